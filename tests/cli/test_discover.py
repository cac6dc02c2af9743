"""``sunzi discover``, and the other commands on open plans."""

import csv
import json

import pytest
from running import running

import sunzi
from sunzi.cli.main import main

WORDS = ["yes"] * 3000 + ["no"] * 1500 + [""] * 1000 + ["maybe"] * 1500


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A plan, a table of texts, and the tally of their reports."""
    folder = tmp_path_factory.mktemp("open")
    plan = sunzi.make_plan("prefixes", sunzi.OpenDomain("letters", 3), 5, cells=1000)
    plan.save(folder / "plan.json")
    (folder / "texts.csv").write_text("id,text\n" + "".join(f"{row},{text}\n" for row, text in enumerate(WORDS)))
    (folder / "list.txt").write_text("yes\nperhaps\n")
    (folder / "public.txt").write_text("yes\nyet\nno\nnot\n")
    names = {name: str(folder / name) for name in ("plan.json", "texts.csv", "list.txt", "public.txt")}
    names |= {"reports": str(folder / "reports.bin"), "tally": str(folder / "tally.bin"), "folder": str(folder)}
    assert main(["privatize", names["plan.json"], names["texts.csv"], "--column", "text", "-o", names["reports"]]) == 0
    assert main(["tally", names["plan.json"], names["reports"], "-o", names["tally"]]) == 0
    return names


def run(files, *words):
    return main(["discover", files["plan.json"], files["tally"], *words])


def test_texts_are_found(files, capsys):
    for extra in ([], ["--prior", files["public.txt"]]):
        assert run(files, *extra, "--format", "json") == 0
        found = json.loads(capsys.readouterr().out)
        assert {row["label"] for row in found["found"]} >= {"yes", "no", "", "may…"}
        assert (found["reports"], found["false_share"]) == (7000, 0.05)


def test_a_list_is_searched(files, capsys):
    assert run(files, "--candidates", files["list.txt"]) == 0
    assert [line.split(",")[0] for line in capsys.readouterr().out.splitlines()] == ["label", "yes"]


def test_a_file_of_no_text_has_a_header(files, capsys, tmp_path):
    (tmp_path / "none.txt").write_text("zzz\n")
    assert run(files, "--candidates", str(tmp_path / "none.txt")) == 0
    assert capsys.readouterr().out == "label,frequency,low,high,p_value\n"
    assert run(files, "--candidates", str(tmp_path / "none.txt"), "-o", str(tmp_path / "found.csv")) == 0
    assert (tmp_path / "found.csv").read_text() == "label,frequency,low,high,p_value\n"


def test_named_texts_are_estimated(files, tmp_path, shown, capsys):
    words = ["estimate", files["plan.json"], files["tally"], "--labels", files["list.txt"]]
    assert main(words) == 0
    rows = [line.split(",") for line in capsys.readouterr().out.splitlines()]
    assert rows[0] == ["label", "frequency", "low", "high", "standard_error", "count"]
    assert [row[0] for row in rows[1:]] == ["yes", "per…"]
    assert float(rows[1][2]) < 3 / 7 < float(rows[1][3])
    (tmp_path / "list.txt").write_text("yes\nzzz\n\n")
    text = shown(*words[:-1], str(tmp_path / "list.txt"))
    assert "3 of 3 values; 1 of them not distinguishable from 0" in text
    assert "(empty text)" in text
    assert main([*words, *(part for name in ("a.html", "a.png") for part in ("-o", str(tmp_path / name)))]) == 0
    assert "per…" in (tmp_path / "a.html").read_text()
    assert main([*words, "--sum", "yes"]) == 2
    assert "estimate each text by itself" in capsys.readouterr().err


def test_named_texts_are_estimated_by_group(tmp_path, capsys):
    plan, folder = sunzi.make_plan("prefixes", sunzi.OpenDomain("letters", 3), 5, cells=1000), str(tmp_path / "groups")
    plan.save(tmp_path / "plan.json")
    rows = [f"DE,{text}\n" for text in WORDS] + ["FR,yes\n"] * 1000
    (tmp_path / "texts.csv").write_text("country,text\n" + "".join(rows))
    (tmp_path / "list.txt").write_text("yes\n")
    words = [str(tmp_path / name) for name in ("plan.json", "texts.csv", "reports.parquet")]
    assert main(["privatize", *words[:2], "--column", "text", "--by", "country", "-o", words[2]]) == 0
    assert main(["tally", words[0], words[2], "--by", "country", "-o", folder]) == 0
    capsys.readouterr()
    words = ["estimate", words[0], folder, "--labels", str(tmp_path / "list.txt")]
    assert main(words) == 0
    found = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    assert [(row["group"], row["label"]) for row in found] == [("country=DE", "yes"), ("country=FR", "yes")]
    assert float(found[0]["frequency"]) < 0.6 < float(found[1]["frequency"])


def test_on_a_terminal_it_says_what_holds(files, shown):
    text = shown("discover", files["plan.json"], files["tally"])
    assert "(empty text)" in text
    assert "5.0 % of them are expected to be false" in " ".join(text.split())
    assert "found in four of five collections from" in " ".join(text.split())
    assert "No text was found" in shown(
        "discover", files["plan.json"], files["tally"], "--candidates", _empty(files), "--false-share", "1e-9"
    )


def _empty(files):
    path = f"{files['folder']}/none.txt"
    with open(path, "w", encoding="utf-8") as stream:
        stream.write("zz\n")
    return path


def test_epochs_are_read_from_a_collector_or_its_store(files, tmp_path, capsys):
    store, plan = str(tmp_path / "store.db"), sunzi.load_plan(files["plan.json"])
    with running(store, {"words": plan}, minimum_reports=100) as service:
        service.send_batch(plan.client(seed=1).report_batch(WORDS), collection="words")
        for source in (service.address, store):
            assert main(["discover", "--from", source, "--format", "json"]) == 0
            found = json.loads(capsys.readouterr().out)
            assert {row["label"] for row in found["found"]} >= {"yes", "no", "", "may…"}
            assert main(["estimate", "--from", source, "--labels", files["list.txt"]]) == 0
            assert "per…" in capsys.readouterr().out


def test_files_are_written(files, tmp_path):
    path = tmp_path / "found.csv"
    assert run(files, "-o", str(path)) == 0
    assert path.read_text().startswith("label,frequency,low,high,p_value\nyes,")


def test_other_commands_know_open_plans(files, capsys):
    assert main(["inspect", files["plan.json"], files["tally"]]) == 0
    assert "prefixes" in capsys.readouterr().out
    assert main(["estimate", files["plan.json"], files["tally"]]) == 2
    message = capsys.readouterr().err
    assert "sunzi discover" in message
    assert "--labels FILE" in message


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["discover", "plan.json"], "give a plan and a tally"),
        (["discover", "plan.json", "tally", "--candidates", "list.txt", "--prior", "public.txt"], "needs no prior"),
        (["privatize", "plan.json", "texts.csv", "--labels", "list.txt", "-o", "out.bin"], "leave --labels out"),
        (["discover", "plan.json", "tally", "--false-share", "2"], "false_share must lie"),
        (["discover", "tally", "plan.json"], "the plan comes first"),
    ],
)
def test_mistakes_are_explained(files, words, message, capsys):
    assert main([files.get(word, word) for word in words]) == 2
    assert message in capsys.readouterr().err


def test_a_tally_of_another_plan_is_refused(files, tmp_path, capsys):
    other = sunzi.make_plan("grr", 3, 1)
    other.simulate([0], seed=1).save(tmp_path / "other.tally")
    assert main(["discover", files["plan.json"], str(tmp_path / "other.tally")]) == 2
    assert "a tally of another plan" in capsys.readouterr().err


def test_long_texts_are_counted_aloud_and_missing_ones_refused(files, tmp_path, capsys):
    table, out = tmp_path / "texts.jsonl", str(tmp_path / "out.bin")
    table.write_text('{"text": "longer"}\n{"text": "no"}\n')
    assert main(["privatize", files["plan.json"], str(table), "-o", out]) == 0
    assert "1 of 2 rows are longer than 3 tokens" in capsys.readouterr().err
    table.write_text('{"text": "no"}\n{"text": null}\n')
    assert main(["privatize", files["plan.json"], str(table), "-o", out, "--force"]) == 2
    assert "row 2: a value is missing" in capsys.readouterr().err
    assert main(["privatize", files["plan.json"], str(table), "-o", out, "--force", "--skip-missing"]) == 0
    assert "1 report" in capsys.readouterr().err
    assert main(["privatize", files["plan.json"], str(table), "-o", out, "--force", "--fold", "case"]) == 2
    assert "this plan has none" in capsys.readouterr().err


def test_parquet_has_columns_of_texts_and_reports(files, tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    table, out = tmp_path / "texts.parquet", tmp_path / "reports.parquet"
    parquet.write_table(pyarrow.table({"text": ["no", None, "yes"], "country": ["DE", "FR", "DE"]}), table)
    words = ["--column", "text", "--by", "country", "--skip-missing", "-o", str(out)]
    assert main(["privatize", files["plan.json"], str(table), *words]) == 0
    assert parquet.read_table(out).num_rows == 2
    parquet.write_table(pyarrow.table({"text": [1, 2]}), table)
    assert main(["privatize", files["plan.json"], str(table), "-o", str(tmp_path / "no.bin")]) == 2
