"""``sunzi diff``: two tallies in files, or two choices of epochs, in every format; and what is refused."""

import csv
import io
import json

import pytest

import sunzi
from sunzi.cli.main import main
from sunzi.collector import Collector, RemoteCollector, Settings, open_store, serve

LABELS = ["Chrome", "Edge", "Opera", "Safari"]
PLAN = sunzi.make_plan("ss-compact", LABELS, 2)
OTHER = sunzi.make_plan("grr", LABELS, 3)
BEFORE = PLAN.simulate(["Chrome"] * 900 + ["Edge"] * 300 + ["Safari"] * 600, seed=1)
AFTER = PLAN.simulate(["Chrome"] * 700 + ["Edge"] * 500 + ["Safari"] * 650, seed=2)
FOUND = sunzi.difference(PLAN.estimate(BEFORE), PLAN.estimate(AFTER))
TALLIES = ("plan.json", "before.tally", "after.tally")


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    PLAN.save("plan.json")
    OTHER.save("other.json")
    BEFORE.save("before.tally")
    AFTER.save("after.tally")
    OTHER.simulate(["Chrome"] * 700 + ["Edge"] * 500, seed=2).save("other.tally")
    return tmp_path


def rows(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_a_pipe_gets_all_changes_the_clearest_first(files, capsys):
    assert main(["diff", *TALLIES, "--confidence", "0.9"]) == 0
    found = rows(capsys.readouterr().out)
    assert list(found[0]) == ["label", "before", "after", "change", "low", "high", "standard_error", "changed"]
    for row, change in zip(found, FOUND.top(4, 0.9), strict=True):
        assert row["label"] == change.label
        assert [float(row[name]) for name in ("before", "after", "change", "low", "high")] == [
            change.before, change.after, change.change, change.low, change.high
        ]  # fmt: skip
        assert row["changed"] == str(change.changed)


def test_a_terminal_gets_a_table(files, shown):
    table = shown("diff", *TALLIES)
    assert "before: 1,800 reports; after: 1,850 reports" in table
    assert "4 of 4 values, the clearest changes first. Test that nothing changed: p < 1e-6." in table
    assert "Yes: the probability of any false verdict is at most 5 %." in table
    table = shown("diff", *TALLIES, "--verdict", "discoveries", "--error-rate", "0.1", "--top", "1")
    assert "90 % interval" in table
    assert "1 of 4 values" in table
    assert "Yes: on average at most 10 % of these are false." in table


def test_files_of_every_format(files):
    names = ["out.csv", "out.json", "out.parquet", "out.png", "out.html"]
    words = [word for name in names for word in ("-o", name)]
    assert main(["diff", *TALLIES, *words, "--title", "Browsers", "--target", "reporters"]) == 0
    document = json.loads((files / "out.json").read_text())
    assert (document["reports_before"], document["reports_after"], document["target"]) == (1800, 1850, "reporters")
    assert document["p_value"] < 0.001
    table = rows((files / "out.csv").read_text())
    assert [row["label"] for row in document["changes"]] == [row["label"] for row in table]
    assert "<h1>Browsers</h1>" in (files / "out.html").read_text()
    assert (files / "out.png").read_bytes().startswith(b"\x89PNG")


def test_plans_and_weights_may_differ_and_values_be_grouped(files, capsys):
    (files / "groups.json").write_text('{"Chromium": ["Chrome", "Edge", "Opera"], "rest": "*"}')
    words = ["--plan-after", "other.json", "--groups", "groups.json", "--weights", "planned", "--format", "json"]
    assert main(["diff", "plan.json", "before.tally", "other.tally", *words]) == 0
    document = json.loads(capsys.readouterr().out)
    assert {row["label"] for row in document["changes"]} == {"Chromium", "rest"}
    assert document["domain_size"] == 2


@pytest.fixture
def store(files):
    """Four epochs, the last with another plan of the same domain."""
    store = open_store("collector.db")
    collector = Collector(store)
    for number, plan in enumerate((PLAN, PLAN, PLAN, OTHER), 1):
        live = collector.open("poll", plan)
        held = ["Chrome"] * 100 * number + ["Edge"] * 100
        store.commit([collector.deposit(live, bytes(16), plan.client(seed=number).report_batch(held))])
        collector.close("poll", live.epoch.number)
    store.close()
    return "collector.db"


def test_epochs_of_a_store_and_of_a_collector(store, capsys):
    assert main(["diff", "--from", store, "1:2", "3:3", "--format", "json"]) == 0
    printed = capsys.readouterr()
    assert printed.err.count("assumes different users or fresh noise in each epoch") == 1
    stored = json.loads(printed.out)
    assert (stored["before"], stored["after"]) == ("epochs 1 to 2", "epoch 3")
    assert (stored["reports_before"], stored["reports_after"]) == (500, 400)
    with serve({"poll": OTHER}, store=store, settings=Settings(port=0, minimum_reports=1)) as collector:
        assert main(["diff", "--from", collector.url, "--collection", "poll", "1:2", "3", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == stored
    assert main(["diff", "1", "4", "--from", store, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["reports_after"] == 500


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["before.tally", "after.tally"], "give a plan and two tallies, or --from and two epochs"),
        (["before.tally", "plan.json", "after.tally"], "the plan comes first"),
        (["plan.json", "before.tally", "before.tally"], "before.tally is given twice"),
        (["plan.json", "before.tally", "other.tally"], "other.tally: this tally belongs to the plan"),
        ([*TALLIES, "--collection", "poll"], "--collection needs --from"),
        ([*TALLIES, "--group-after", "country=DE"], "--group-after needs --from"),
        ([*TALLIES, "--top", "0"], "--top must be at least 1, got 0"),
        ([*TALLIES, "--title", "Changes"], "--title is the heading of a page"),
        ([*TALLIES, "--error-rate", "1.5"], "--error-rate must lie between 0 and 1, got 1.5"),
        ([*TALLIES, "-o", "changes.txt"], "must end in one of .csv"),
        (["--from", "x.db", *TALLIES], "with --from, give two epochs and no plan"),
        (["--from", "x.db", "one", "2"], "epochs are a number such as 7"),
    ],
)
def test_bad_arguments_are_refused(files, complaint, words, message):
    assert main(["diff", *words]) == 2
    assert message in complaint()


def test_groups_of_one_epoch(files, capsys, complaint):
    plan = PLAN.with_groups({"country": ["DE", "FR"], "release": ["1"]})
    with serve(plan, store="groups.db", settings=Settings(port=0, minimum_reports=1)) as collector:
        remote = RemoteCollector(collector.url, max_epsilon=2)
        epoch = remote.current()
        for country, value in (("DE", "Chrome"), ("FR", "Safari")):
            remote.upload(
                epoch, plan.client(seed=1).report_batch([value] * 500), groups={"country": country, "release": "1"}
            )
        remote.close()
        words = ["diff", "--from", collector.url, "1", "1", "--format", "json", "--group", "country=DE"]
        assert main([*words, "--group-after", "country=FR"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert (found["before"], found["after"]) == ("epoch 1, country=DE", "epoch 1, country=FR")
        assert {row["label"] for row in found["changes"] if row["changed"]} == {"Chrome", "Safari"}
        assert main([*words, "--group-after", "release=1"]) == 2
        assert "both sides contain reports of epoch 1;" in complaint()


def test_an_epoch_is_not_compared_with_itself(store, complaint):
    assert main(["diff", "--from", store, "1:3", "2:4"]) == 2
    assert "both sides contain reports of epoch 2;" in complaint()
    assert main(["diff", "--from", store, "1", "3:4"]) == 2
    assert "epochs 3 and 4 of poll have different plans" in complaint()


def test_different_domains_are_refused(files, complaint):
    plan = sunzi.make_plan("grr", 3, 1)
    plan.save("three.json")
    plan.simulate([0, 1, 2], seed=1).save("three.tally")
    assert main(["diff", "plan.json", "before.tally", "three.tally", "--plan-after", "three.json"]) == 2
    assert "different domains, 4 and 3 values" in complaint()


def test_ordered_values_have_the_names_of_their_bins(files, capsys):
    plan = sunzi.make_ordered(0, 40, 4, 4, unit="ms")
    plan.save("ordered.json")
    for number in (1, 2):
        plan.simulate([5 * number] * 300, seed=number).save(f"{number}.tally")
    assert main(["diff", "ordered.json", "1.tally", "2.tally"]) == 0
    assert {row["label"] for row in rows(capsys.readouterr().out)[:2]} == {"0 to 10 ms", "10 to 20 ms"}
