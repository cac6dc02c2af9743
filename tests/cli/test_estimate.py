"""``sunzi estimate``: every format has the same numbers, and every bar and frequency has its interval."""

import csv
import io
import json
import re
import subprocess
import sys
from html.parser import HTMLParser

import numpy as np
import pytest
from pyarrow import parquet

import sunzi
from sunzi.cli.main import main
from sunzi.results.histogram import POSTPROCESSING

RAW = ["label", "frequency", "low", "high", "standard_error", "count"]


def columns_of(estimate, confidence=0.95, target="reporters"):
    low, high = estimate.interval(confidence, target=target)
    errors = estimate.standard_errors(target)
    return dict(
        zip(RAW, [list(estimate.domain.labels), estimate.frequencies, low, high, errors, estimate.counts], strict=True)
    )


def expected(counted, **options):
    tally = sunzi.load_tally(counted.path("tally.bin"))
    return columns_of(counted.plan.estimate(tally), **options)


def agree(rows, columns):
    for name, values in columns.items():
        found = [row[name] for row in rows]
        if name == "label":
            assert found == list(values)
        else:
            np.testing.assert_array_equal(np.array(found, dtype=float), values)


def read(path):
    if path.suffix == ".csv":
        return list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"), newline="")))
    if path.suffix == ".json":
        return json.loads(path.read_text(encoding="utf-8"))["histogram"]
    return parquet.read_table(path).to_pylist()


@pytest.mark.parametrize("suffix", ["csv", "json", "parquet"])
def test_tables_hold_the_estimate_exactly(counted, suffix):
    assert counted.run("estimate", "plan.json", "tally.bin", "-o", f"out.{suffix}") == 0
    rows = read(counted.directory / f"out.{suffix}")
    assert list(rows[0]) == RAW
    agree(rows, expected(counted))


def test_level_and_target_reach_the_intervals(counted):
    words = ("--confidence", "0.5", "--target", "population", "-o", "out.json")
    assert counted.run("estimate", "plan.json", "tally.bin", *words) == 0
    agree(read(counted.directory / "out.json"), expected(counted, confidence=0.5, target="population"))
    notes = json.loads((counted.directory / "out.json").read_text())
    assert (notes["confidence"], notes["target"], notes["reports"]) == (0.5, "population", 4_000)
    assert (notes["plan"], notes["epsilon"]) == (counted.plan.fingerprint, "3")


@pytest.mark.parametrize("method", POSTPROCESSING)
def test_post_processed_values_are_shown_next_to_the_estimate(counted, method):
    assert counted.run("estimate", "plan.json", "tally.bin", "--postprocess", method, "-o", "out.parquet") == 0
    rows = read(counted.directory / "out.parquet")
    assert list(rows[0]) == [*RAW, f"frequency_{method}"]
    agree(rows, expected(counted))
    estimate = counted.plan.estimate(sunzi.load_tally(counted.path("tally.bin")))
    processed = estimate.postprocess(method).frequencies
    np.testing.assert_allclose([row[f"frequency_{method}"] for row in rows], processed, rtol=0, atol=1e-12)
    notes = {
        key.decode(): value.decode() for key, value in parquet.read_schema(counted.path("out.parquet")).metadata.items()
    }
    assert notes["postprocess"] == method
    assert notes["postprocess_effect"]


def test_the_top_is_sorted(counted):
    assert counted.run("estimate", "plan.json", "tally.bin", "--top", "2", "-o", "out.csv") == 0
    assert [row["label"] for row in read(counted.directory / "out.csv")] == ["Chrome", "Firefox"]


def test_a_pipe_gets_csv_of_all_values(counted, capfdbinary):
    assert counted.run("estimate", "plan.json", "tally.bin") == 0
    rows = list(csv.DictReader(io.StringIO(capfdbinary.readouterr().out.decode(), newline="")))
    agree(rows, expected(counted))


def test_integers_stay_integers(tmp_path):
    plan = sunzi.make_plan("grr", 4, 2)
    plan.save(tmp_path / "plan.json")
    plan.simulate([0, 1, 2, 3] * 50, seed=1).save(tmp_path / "tally")
    words = [str(tmp_path / "plan.json"), str(tmp_path / "tally"), "-o", str(tmp_path / "out.json")]
    assert main(["estimate", *words]) == 0
    assert [row["label"] for row in read(tmp_path / "out.json")] == [0, 1, 2, 3]


class Page(HTMLParser):
    """Collects the URLs that a browser would load, and counts bars and intervals."""

    def __init__(self, text):
        super().__init__()
        self.requests, self.classes, self.tags = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        found = dict(attrs)
        self.requests += [found[name] for name in ("src", "href", "action", "data") if name in found]
        self.classes += (found.get("class") or "").split()


def nasty_page(tmp_path, *words):
    labels = ["<script>alert(1)</script>", 'quote " and &amp;', "日本語", "plain"]
    plan = sunzi.make_plan("ss-compact", labels, 2)
    plan.save(tmp_path / "plan.json")
    plan.simulate([labels[0]] * 500 + [labels[2]] * 300, seed=1).save(tmp_path / "tally")
    files = [str(tmp_path / name) for name in ("plan.json", "tally", "page.html")]
    assert main(["estimate", *files[:2], "-o", files[2], *words]) == 0
    return (tmp_path / "page.html").read_text(encoding="utf-8")


def test_a_page_asks_nothing_of_the_network(tmp_path):
    text = nasty_page(tmp_path)
    page = Page(text)
    assert page.requests == []
    assert not {"link", "img", "iframe", "object"} & set(page.tags)
    assert page.tags.count("script") == 1
    assert "url(" not in text
    assert "://" not in text
    assert "default-src 'none'" in text
    assert "script-src 'sha256-" in text


def test_a_page_draws_no_bar_without_its_interval(tmp_path):
    page = Page(nasty_page(tmp_path))
    assert page.classes.count("bar") == page.classes.count("whisker") == 4


def test_a_page_says_what_was_promised(tmp_path):
    text = nasty_page(
        tmp_path,
        "--postprocess",
        "simplex",
        "--confidence",
        "0.9",
        "--target",
        "population",
        "--title",
        "Spring & fall",
    )
    for words in (
        "<h1>Spring &amp; fall</h1>",
        "800 reports, 4 values · 20",
        "800 reports",
        "7.39 times as likely",
        "90 % interval",
        "random sample",
        "simplex, no interval",
        "日本語",
    ):
        assert words in text
    assert "&lt;script&gt;" in text


def test_pictures(counted):
    for suffix, opening in {"png": b"\x89PNG\r\n", "svg": b"<?xml"}.items():
        assert counted.run("estimate", "plan.json", "tally.bin", "-o", f"out.{suffix}") == 0
        assert (counted.directory / f"out.{suffix}").read_bytes().startswith(opening)


def test_several_outputs(counted, capsys):
    outputs = ["-o", "out.json", "-o", "out.html", "-o", "out.csv"]
    assert counted.run("estimate", "plan.json", "tally.bin", "--title", "Spring", *outputs) == 0
    assert {"out.json", "out.html", "out.csv"} <= set(counted.names())
    before = counted.names()
    assert counted.run("estimate", "plan.json", "tally.bin", "-o", "new.csv", "-o", "out.html") == 2
    assert "out.html exists" in capsys.readouterr().err
    assert counted.names() == before


def test_a_font_that_lacks_a_label_is_one_note(tmp_path, capsys):
    plan = sunzi.make_plan("grr", ["日本語", "b"], 2)
    plan.save(tmp_path / "plan.json")
    plan.simulate(["b"] * 100, seed=1).save(tmp_path / "tally")
    files = [str(tmp_path / name) for name in ("plan.json", "tally", "out.png")]
    assert main(["estimate", *files[:2], "-o", files[2]]) == 0
    notes = capsys.readouterr().err.splitlines()[:-1]  # the last line says what was written
    assert len(notes) <= 1  # none if one font has them all


FAILURES = {
    "top": (["--top", "0"], "--top must be at least 1, got 0"),
    "confidence": (["--confidence", "2"], "confidence must lie between 0 and 1, got 2"),
    "title": (["--title", "Spring"], "--title is the heading of a page; add -o with a name that ends in .html"),
    "suffix": (["-o", "out.docx"], "must end in one of .csv"),
    "picture": (["--postprocess", "clip", "-o", "out.png"], "a picture shows only the unbiased estimates"),
}


@pytest.mark.parametrize("case", FAILURES)
def test_wrong_arguments(counted, complaint, case):
    words, message = FAILURES[case]
    before = counted.names()
    assert counted.run("estimate", "plan.json", "tally.bin", "-o", "out.csv", *words) == 2
    assert message in complaint()
    assert counted.names() == before


def test_a_tally_of_another_plan_and_one_without_reports(counted, complaint):
    sunzi.make_plan("grr", 5, 1).save(counted.path("other.json"))
    assert counted.run("estimate", "other.json", "tally.bin", "-o", "out.csv") == 2
    assert "tally.bin: this tally belongs to the plan" in complaint()
    counted.plan.empty_tally().save(counted.path("none.bin"))
    assert counted.run("estimate", "plan.json", "none.bin", "-o", "out.csv") == 2
    assert "no report yet" in complaint()
    assert "out.csv" not in counted.names()


@pytest.mark.slow
def test_without_the_extras_csv_and_a_page_still_work(counted):
    code = (
        "import sys\nfrom sunzi.cli.main import main\n"
        "class Absent:\n    def find_spec(self, name, path=None, target=None):\n"
        "        if name.partition('.')[0] in ('pyarrow', 'matplotlib', 'numba', 'pandas'):\n"
        "            raise ModuleNotFoundError(f'No module named {name!r}', name=name)\n"
        "sys.meta_path.insert(0, Absent())\n"
        "files = ['plan.json', 'tally.bin', '-o']\n"
        "codes = [main(['estimate', *files, f'x.{kind}']) for kind in ('csv', 'html', 'parquet', 'png')]\n"
        "codes.append(main(['privatize', 'plan.json', 'data.csv', '--column', 'browser', '-o', 'x.bin']))\n"
        "print(codes)"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=counted.directory, capture_output=True, text=True, check=False
    )
    assert run.stdout.strip() == "[0, 0, 2, 2, 0]", run.stderr
    assert re.findall(r"sunzi\[(\w+)\]", run.stderr) == ["frames", "plot"]
    assert {"x.csv", "x.html", "x.bin"} <= set(counted.names())
    assert not {"x.parquet", "x.png"} & set(counted.names())


def test_weights_are_chosen_and_named(tmp_path):
    plan = sunzi.make_plan("mss", 30, 4)
    tally = plan.simulate(np.arange(9000) ** 2 % 30, seed=1)
    plan.save(tmp_path / "plan.json")
    tally.save(tmp_path / "tally.bin")
    for weights in ("efficient", "planned"):
        target, files = tmp_path / f"{weights}.json", [str(tmp_path / name) for name in ("plan.json", "tally.bin")]
        assert main(["estimate", *files, "--weights", weights, "-o", str(target)]) == 0
        assert json.loads(target.read_text(encoding="utf-8"))["weights"] == weights
        frequencies = plan.estimate(tally, weights=weights).frequencies
        np.testing.assert_array_equal([row["frequency"] for row in read(target)], frequencies)


def test_a_table_says_which_values_are_above_zero(tmp_path, capsys):
    plan = sunzi.make_plan("grr", 4, 1)
    plan.save(tmp_path / "plan.json")
    plan.simulate([0] * 900 + [1] * 100, seed=6).save(tmp_path / "tally")
    assert main(["estimate", str(tmp_path / "plan.json"), str(tmp_path / "tally"), "--format", "table"]) == 0
    printed = capsys.readouterr().out
    rows = [line.split() for line in printed.splitlines() if "%" in line and "interval" not in line]
    assert [row[-1] for row in rows] == ["yes", "alone", "no", "no"]
    assert "4 of 4 values; 2 of them not distinguishable from 0." in printed
    assert '"alone" is by the value\'s own interval only' in " ".join(printed.split())
    assert max(map(len, printed.splitlines())) <= 80


def test_what_readers_can_learn_is_shown_where_the_histogram_is(counted, shown, capsys):
    words = ("estimate", "plan.json", "tally.bin", "--publish-delta", "1e-4", "--honest", ".9")
    reports = sunzi.load_tally(counted.path("tally.bin")).reports
    found = counted.plan.batch_guarantee(reports, 1e-4, honest=0.9, reader="tally")
    assert counted.run(*words, "-o", "out.json", "-o", "out.parquet", "-o", "out.html") == 0
    assert json.loads((counted.directory / "out.json").read_text())["batch_guarantee"] == found.to_dict()
    noted = parquet.read_table(counted.directory / "out.parquet").schema.metadata[b"batch_guarantee"]
    assert json.loads(noted) == found.to_dict()
    assert found.in_words().replace("'", "&#x27;") in (counted.directory / "out.html").read_text()
    capsys.readouterr()
    assert counted.run(*words, "-o", "out.csv", "-o", "out.svg") == 0
    said = capsys.readouterr().err
    assert "out.csv has no place for what readers can learn" in said
    assert "out.svg has no place for what readers can learn" in said
    assert f"for batches of at least {reports:,} reports, as many as here" in said
    text = shown("estimate", counted.path("plan.json"), counted.path("tally.bin"), *words[3:])
    assert f"What readers can learn: {found.in_words()}" in text.replace("\n", " ")
    for name, fact in found.facts():
        assert f"{name:15}  {fact}" in text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--publish-delta", "1e-8"), "--publish-delta needs --honest, the share of reports"),
        (("--honest", ".9"), "--honest needs --publish-delta"),
        (("--publish-delta", "1", "--honest", "1"), "delta must lie between 1e-15 and 1, got 1"),
        (("--publish-delta", "1e-8", "--honest", "0"), "honest must be a share above 0 and at most 1, got 0"),
        (("--publish-delta", "1e-8", "--honest", "1", "--sum", "a"), "leave out groups, sums and queries"),
    ],
)
def test_a_guarantee_needs_its_conditions(counted, complaint, words, message):
    assert counted.run("estimate", "plan.json", "tally.bin", *words) == 2
    assert message in complaint()


def test_a_collector_states_its_own_guarantee(complaint):
    assert main(["estimate", "--from", "http://127.0.0.1:1", "--publish-delta", "1e-8", "--honest", "1"]) == 2
    assert "states the guarantee of all that it publishes" in complaint()


@pytest.mark.parametrize("command", ["estimate", "trend"])
def test_a_stated_lifetime_is_part_of_the_answer(command, tmp_path, monkeypatch, capsys):
    """A device that has spent its budget repeats its latest report, so that shares of new values lag."""
    monkeypatch.chdir(tmp_path)
    plan = sunzi.make_plan("grr", 4, 1).with_lifetime(3)
    plan.save("plan.json")
    for number in (1, 2):
        plan.simulate([0] * 900 + [1] * 100, seed=number).save(f"{number}.tally")
    tallies = ["1.tally"] if command == "estimate" else ["1.tally", "2.tally"]
    assert main([command, "plan.json", *tallies, "--format", "table"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "A device with a lifetime budget of 3 pays for 3 different answers; then it repeats its latest" in printed
