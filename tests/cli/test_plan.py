"""``sunzi plan``: its output, its files, and its refusals."""

import csv
import gzip
import io
import json
import re
import shlex
from fractions import Fraction
from pathlib import Path

import minimal_client
import pytest

import sunzi
from sunzi.cli.main import main
from sunzi.planning import epsilon_needed, evaluate, users_needed
from sunzi.planning.axes_table import AxesTable

PAGE = Path(__file__).resolve().parents[2] / "docs" / "planning.md"
SMALL = ("plan", "--size", "40", "--epsilon", "2", "--users", "1e4")


@pytest.fixture
def answer(capsys):
    """Run a successful command line and return the JSON it prints."""

    def run(*words: str) -> dict:
        assert main([*words, "--format", "json"]) == 0
        printed, said = capsys.readouterr()
        assert said == "" or re.fullmatch(r"wrote the plan [0-9a-f]{16}… to .*\n", said)
        return json.loads(printed)

    return run


def test_json_has_everything(answer):
    found = answer(*SMALL)
    assert (found["domain_size"], found["epsilon"], found["users"]) == (40, "2", 10_000)
    assert [option["protocol"] for option in found["options"]] == list(sunzi.catalogue())
    chosen = [option["protocol"] for option in found["options"] if option["chosen"]]
    assert chosen == [found["protocol"]]
    plan = sunzi.make_plan(found["protocol"], 40, 2)
    assert found["fingerprint"] == plan.fingerprint
    row = next(option for option in found["options"] if option["chosen"])
    assert row["standard_error"] == evaluate(plan, 10_000).standard_error
    assert found["reason"].startswith(found["protocol"])


def test_in_a_pipe_it_prints_csv_with_a_line_for_every_protocol(capsys):
    assert main([*SMALL]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [row["protocol"] for row in rows] == list(sunzi.catalogue())
    assert [row["chosen"] for row in rows].count("True") == 1


def test_on_a_terminal_it_prints_a_table_and_marks_the_choice(shown):
    text = shown(*SMALL, "--max-bits", "39")
    lines = re.sub(r"\x1b\[\d*m", "", text).splitlines()
    assert lines[0] == "40 values, 10,000 users, epsilon 2"
    assert lines[2].split() == AxesTable.of([]).header
    table = {line[2:].split()[0]: line for line in lines[3:11]}
    assert tuple(table) == sunzi.catalogue()
    marked = [name for name, line in table.items() if line.startswith(">")]
    assert len(marked) == 1
    assert "not oue: 40 bits per report exceed 39" in lines
    reason = next(line for line in lines if line.startswith(f"{marked[0]} has the shortest reports"))
    assert reason.endswith(".")
    assert "7.39 times as likely" in lines[-2]
    assert re.fullmatch(r"Someone who sees a report .*, compared with 2\.5 % without it, .*\.", lines[-1])
    assert "\x1b[32m>" in text


def test_the_plan_is_written(answer, tmp_path):
    path = tmp_path / "plan.json"
    found = answer(*SMALL, "--protocol", "oue", "-o", str(path))
    assert found["output"] == str(path)
    assert sunzi.load_plan(path).fingerprint == found["fingerprint"]
    assert sunzi.load_plan(path) == sunzi.make_plan("oue", 40, 2)
    assert [entry.name for entry in tmp_path.iterdir()] == ["plan.json"]


def test_labels_come_from_a_file(answer, tmp_path):
    labels, inside, outside = tmp_path / "labels.txt", tmp_path / "inside.json", tmp_path / "outside.json"
    labels.write_text("Firefox\nChrome\nelse\n", encoding="utf-8")
    terms = ("plan", "--domain", str(labels), "--epsilon", "1/2", "--users", "500", "--other", "else")
    answer(*terms, "-o", str(inside))
    assert sunzi.load_plan(inside).domain.labels == ("Firefox", "Chrome", "else")
    assert sunzi.load_plan(inside).domain.index("Lynx") == 2
    answer(*terms, "--separate-labels", "-o", str(outside))
    assert sunzi.load_plan(outside).domain.labels is None
    assert sunzi.load_plan(outside, labels=labels).domain.index("Chrome") == 1


def test_objectives_and_limits_reach_the_recommendation(answer):
    small = ("plan", "--size", "100", "--epsilon", "5", "--users", "1000")
    assert answer(*small, "--objective", "attack")["protocol"] in ("mss", "mss-compact")
    limited = answer(*small, "--max-attack", "0.5", "--max-bits", "30")
    assert limited["protocol"] in ("ss", "ss-compact", "pgr")
    assert next(option for option in limited["options"] if option["chosen"])["attackability"] <= 0.5
    assert "exceeds 0.5" in limited["options"][0]["excluded"]
    notes = {option["protocol"]: option["note"] for option in limited["options"]}
    assert "residues do not pay" in notes["mss"]
    assert notes["ss"] == ""


def test_the_table_says_where_residues_do_not_pay(shown):
    assert "mss and mss-compact: residues do not pay below 1.5·e^ε values" in shown(
        "plan", "--size", "20", "--epsilon", "5", "--users", "1000"
    )
    assert "do not pay" not in shown("plan", "--size", "40", "--epsilon", "3", "--users", "1000")


def test_the_search_finds_moduli(answer, monkeypatch, tmp_path):
    monkeypatch.setenv("SUNZI_CACHE", str(tmp_path))
    found = answer("plan", "--size", "30", "--epsilon", "1", "--users", "100", "--protocol", "mss", "--max-bits", "10")
    assert found["options"][0]["bits"] <= 10


def test_users_for_a_target_error(answer, shown):
    terms = ("plan", "--size", "40", "--epsilon", "2", "--target-error", "0.01", "--protocol", "oue")
    needed = users_needed("oue", 40, 2, 0.01)
    assert f"A standard error of 1.00 % needs {needed:,} users with oue." in shown(*terms)
    assert answer(*terms)["users"] == needed


def test_epsilon_for_a_target_error(answer, shown):
    terms = ("plan", "--size", "40", "--users", "2000", "--target-error", "0.01", "--protocol", "oue")
    needed = epsilon_needed("oue", 40, 2000, 0.01)
    expected = f"A standard error of 1.00 % with 2,000 users needs epsilon {float(needed):g} with oue."
    assert expected in shown(*terms)
    assert answer(*terms)["epsilon"] == str(needed)


@pytest.mark.parametrize(
    ("words", "complaint_words"),
    [
        (("--size", "1", "--epsilon", "1", "--users", "5"), "a domain needs between 2 and 2^30 values, got 1"),
        (("--size", "1.5", "--epsilon", "1", "--users", "5"), "--size must be a whole number, got '1.5'"),
        (("--size", "many", "--epsilon", "1", "--users", "5"), "--size must be a number such as 2, 0.5"),
        (("--size", "9", "--epsilon=-1", "--users", "5"), "epsilon must be positive, got -1"),
        (("--size", "9", "--epsilon", "1", "--users", "0"), "users must be at least 1, got 0"),
        (("--size", "9", "--epsilon", "1", "--users", "x"), "--users must be a number such as"),
        (("--size", "9", "--epsilon", "1"), "give --users; --target-error can replace one of them"),
        (("--size", "9"), "give --users and --epsilon"),
        (("--size", "9", "--target-error", "1"), "give --users and --epsilon"),
        (("--size", "9", "--epsilon", "1", "--users", "5", "--target-error", "1"), "leave one of them out"),
        (("--size", "9", "--epsilon", "1", "--target-error", "0"), "target error must be a positive share"),
        (("--size", "9", "--epsilon", "1", "--users", "5", "--protocol", "telepathy"), "got 'telepathy'"),
        (("--size", "9", "--epsilon", "1", "--users", "5", "--max-bits", "0"), "max_bits must be at least 1, got 0"),
        (("--size", "9", "--epsilon", "1", "--users", "5", "--max-attack", "2"), "max_attack must lie between 0 and 1"),
        (("--size", "9", "--epsilon", "1", "--users", "5", "--other", "x"), "give --domain instead of --size"),
        (("--size", "9", "--epsilon", "1", "--users", "5", "--separate-labels"), "give --domain instead of --size"),
        (("--size", "9", "--epsilon", "1", "--users", "5", "-o", "-"), "-o needs a file name"),
        (
            ("--size", "9", "--epsilon", "1", "--users", "5", "--protocol", "oue", "--objective", "bits"),
            "--objective has no effect with --protocol",
        ),
        (
            ("--size", "9", "--epsilon", "1", "--users", "5", "--protocol", "oue", "--max-bits", "5"),
            "oue does not meet the limits: 9 bits per report exceed 5",
        ),
    ],
)
def test_wrong_arguments_are_one_line_and_code_2(words, complaint_words, complaint):
    assert main(["plan", *words]) == 2
    assert complaint_words in complaint()


def test_files_that_fail(tmp_path, complaint):
    assert main(["plan", "--domain", str(tmp_path / "none.txt"), "--epsilon", "1", "--users", "5"]) == 1
    assert "none.txt" in complaint()
    assert main([*SMALL, "--protocol", "grr", "-o", str(tmp_path / "none" / "plan.json")]) == 1
    assert "none" in complaint()
    labels = tmp_path / "labels.txt"
    labels.write_text("a\nb\na\n")
    assert main(["plan", "--domain", str(labels), "--epsilon", "1", "--users", "5"]) == 2
    assert "label 'a' occurs twice" in complaint()
    labels.write_text("a\nb\n")
    assert main(["plan", "--domain", str(labels), "--epsilon", "1", "--users", "5", "-o", str(labels)]) == 2
    assert "must not be overwritten" in complaint()
    assert labels.read_text() == "a\nb\n"


def test_one_domain_is_required_and_formats_are_known(capsys):
    for words in (["plan", "--epsilon", "1"], [*SMALL, "--domain", "x"]):
        assert main(words) == 2
        assert "give exactly one of --domain, --size, --ordered" in capsys.readouterr().err
    with pytest.raises(SystemExit, match=r"^2$"):
        main([*SMALL, "--format", "xml"])
    assert "xml" in capsys.readouterr().err


@pytest.mark.slow
def test_the_page_about_planning_shows_what_the_commands_print(tmp_path, monkeypatch, shown):
    """The commands on the page run and print the table on the page."""
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```console\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    commands = [line.removeprefix("$ sunzi ") for block in blocks for line in block.splitlines() if line[:1] == "$"]
    printed = [re.sub(r"\x1b\[\d*m", "", shown(*shlex.split(command))) for command in commands]
    assert len(commands) == 7
    for block in (blocks[0], blocks[2]):
        command, table = block.split("\n", 1)
        assert printed[commands.index(command.removeprefix("$ sunzi "))].startswith(table)
    assert "3,680,194 users" in printed[1]
    assert "epsilon 3.72" in re.sub(r"\s+", " ", printed[2])
    made = {path.name for path in tmp_path.iterdir()}
    assert made == {"plan.json", "sweep.csv", "sweep.png", "sizes.csv", "measured.csv"}


def test_labels_come_from_a_column_of_a_table(tmp_path, answer, complaint):
    table = tmp_path / "browsers.csv.gz"
    table.write_bytes(gzip.compress(b"id;name\n1;Chrome\n2;Edge\n3;Safari\n"))
    terms = ("plan", "--domain", str(table), "--epsilon", "1", "--users", "100", "--protocol", "grr")
    found = answer(*terms, "--column", "name", "-o", str(tmp_path / "plan.json"))
    assert found["domain_size"] == 3
    assert sunzi.load_plan(tmp_path / "plan.json").domain.labels == ("Chrome", "Edge", "Safari")
    assert main(terms) == 2
    assert "is a table; name the column of labels with --column" in complaint()
    labels = tmp_path / "labels.txt.gz"
    labels.write_bytes(gzip.compress(b"a\nb\n"))
    assert answer("plan", "--domain", str(labels), *terms[3:])["domain_size"] == 2
    assert main(["plan", "--domain", str(labels), *terms[3:], "--column", "a"]) == 2
    assert "is not a table" in complaint()


def test_a_page_besides_the_plan(tmp_path, answer, capsys):
    plan, page = tmp_path / "plan.json", tmp_path / "plan.html"
    words = [*SMALL, "--protocol", "grr", "-o", str(page), "-o", str(plan)]
    assert main([*words, "--format", "json"]) == 0
    printed, said = capsys.readouterr()
    assert said.splitlines()[0] == f"wrote the page to {page}"
    assert json.loads(printed)["output"] == str(plan)
    assert sunzi.load_plan(plan).fingerprint in page.read_text(encoding="utf-8")


def test_central_epsilon_with_its_conditions(shown, answer):
    words = ("plan", "--size", "1024", "--epsilon", "2", "--users", "1e5", "--protocol", "grr", "--delta", "1e-8")
    assert (
        "central: proven epsilon of a batch of all reports (and the epsilon that an attack reaches), with delta = 1e-08"
        in shown(*words)
    )
    (option,) = answer(*words)["options"]
    assert 0 < option["central_attack"] <= option["central_epsilon"] < 0.01
    assert option["delta"] == 1e-8


def test_minimal_profile_recommends_plans_for_small_clients(answer, tmp_path):
    path = tmp_path / "plan.json"
    found = answer(*SMALL, "--profile", "minimal", "-o", str(path))
    assert [option["protocol"] for option in found["options"]] == ["grr", "ss-compact"]
    assert minimal_client.Plan(path.read_bytes()).digest.hex() == found["fingerprint"]
    assert answer(*SMALL, "--profile", "minimal", "--protocol", "grr")["protocol"] == "grr"
    target = ("plan", "--size", "100", "--users", "1e5", "--target-error", "0.01", "--profile", "minimal")
    assert answer(*target)["protocol"] in ("grr", "ss-compact")


def test_minimal_profile_puts_labels_into_the_plan(answer, tmp_path):
    labels, path = tmp_path / "labels.txt", tmp_path / "plan.json"
    labels.write_text("red\ngreen\nother\n", encoding="utf-8")
    terms = ("--epsilon", "1", "--users", "1e4", "--other", "other", "--profile", "minimal")
    answer("plan", "--domain", str(labels), *terms, "-o", str(path))
    assert minimal_client.Plan(path.read_bytes()).index("mauve") == 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--protocol", "mss"), "the minimal profile has the protocols grr and ss-compact, got mss"),
        (("--group", "country=DE,FR"), "--group is outside the minimal profile; omit it or --profile"),
        (("--central", "1,1e-8"), "--central is outside the minimal profile; omit it or --profile"),
        (("--separate-labels",), "--separate-labels is outside the minimal profile; omit it or --profile"),
    ],
)
def test_minimal_profile_refuses_what_small_clients_lack(words, message, capsys):
    assert main([*SMALL, "--profile", "minimal", *words]) == 2
    assert f"sunzi: error: {message}" in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["ordered", "number", "tables", "open"])
def test_minimal_profile_is_for_lists_of_values(kind, capsys):
    assert main(["plan", f"--{kind}", "0:5", "--epsilon", "1", "--profile", "minimal"]) == 2
    assert f"--{kind} is outside the minimal profile" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("lifetime", "sentence"),
    [
        ("4", "a device with a lifetime budget of 4 pays for 4 different answers; then it repeats its latest report"),
        ("3/2", "a device with a lifetime budget of 3/2 pays for 1 different answer; then it repeats"),
    ],
)
@pytest.mark.parametrize("kind", [("--size", "100"), ("--ordered", "0:8"), ("--open", "letters", "--longest", "4")])
def test_what_a_lifetime_budget_pays_for(lifetime, sentence, kind, tmp_path, capsys):
    bins = ("--bins", "8") if kind[0] == "--ordered" else ()
    path = tmp_path / "plan.json"
    words = ("--epsilon", "1", "--users", "1e4", "--lifetime", lifetime, "-o", str(path))
    assert main(["plan", *kind, *bins, *words]) == 0
    assert sentence in capsys.readouterr().err
    assert sunzi.load_plan(path).lifetime == Fraction(lifetime)


@pytest.mark.parametrize(
    ("lifetime", "message"),
    [("0", "epsilon must be positive, got 0"), ("1/2", "a lifetime of 1/2 does not pay for one report of epsilon")],
)
def test_a_wrong_lifetime_writes_no_plan(lifetime, message, capsys, tmp_path):
    assert main([*SMALL, "--lifetime", lifetime, "-o", str(tmp_path / "plan.json")]) == 2
    assert message in capsys.readouterr().err
    assert not any(tmp_path.iterdir())
