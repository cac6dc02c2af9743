"""``sunzi batch``: the central ε with every condition."""

import json

import pytest

from sunzi.batch import READERS, rounded


def test_the_guarantee_as_a_table_and_as_data(collection, shown, capsys):
    words = ("--users", "1e5", "--delta", "1e-8", "--honest", ".9")
    found = collection.plan.batch_guarantee(100_000, 1e-8, honest=0.9)
    assert collection.run("batch", collection.path("plan.json"), *words, "--format", "json") == 0
    document = json.loads(capsys.readouterr().out)
    assert document == {"protocol": "ss-compact", "domain_size": 5, **found.to_dict()}
    text = shown("batch", collection.path("plan.json"), *words)
    assert f"central epsilon  {rounded(found.epsilon, 4, up=True)}, with delta = 1e-08 (proven)" in text
    assert f"attack           {rounded(found.attack_epsilon, 4, up=False)}: no smaller epsilon can be claimed" in text
    assert "honest           90 % of the reports follow the plan: at least 90,000" in text
    assert f"reader           {READERS['reports']}" in text
    assert f"What this means: {found.in_words()}" in text.replace("\n", " ")


def test_epochs_with_fresh_noise_and_with_memoised_reports(collection, shown):
    plan, words = collection.path("plan.json"), ("--users", "1e5", "--delta", "1e-8", "--epochs", "30")
    text = shown("batch", plan, *words, "--reader", "tally")
    assert "epochs           30, fresh noise in each" in text
    assert f"reader           {READERS['tally']}" in text
    text = shown("batch", plan, *words, "--memoised", "--cohort", "1e4")
    assert "cohort           at least 10,000 people in exactly the same batches" in text
    assert "epochs           30, repeated memoised reports" in text


def test_the_least_batch_for_a_target(collection, shown, capsys):
    least = collection.plan.minimum_batch(2, 1e-8)
    plan, words = collection.path("plan.json"), ("--delta", "1e-8", "--target", "2")
    assert collection.run("batch", plan, *words, "--format", "json") == 0
    document = json.loads(capsys.readouterr().out)
    assert document["minimum_reports"] == document["target_reports"] == least
    assert document["epsilon"] <= document["target_epsilon"] == 2
    text = shown("batch", plan, *words, "--users", "1e5")
    assert f"target           central epsilon 2 needs {least:,} reports in each batch" in text
    assert "at least 100,000 reports in each batch" in text
    text = shown("batch", plan, "--delta", "1e-8", "--target", "32")
    assert "target           central epsilon 32 needs 1 report in each batch" in text


def test_a_large_delta_is_noted(collection, capsys):
    assert collection.run("batch", collection.path("plan.json"), "--users", "1e3", "--delta", ".01") == 0
    printed = capsys.readouterr()
    assert "sunzi: note: delta = 0.01 is not below 1/1,000" in printed.err
    assert printed.out.startswith("protocol,domain_size,plan,epsilon,attack_epsilon,delta,")


@pytest.mark.slow
def test_a_picture_and_a_page_with_the_same_curves(collection, capsys, monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr("sunzi.planning.central_curves._STEPS", 1)
    monkeypatch.setattr("sunzi.planning.central_curves._EPSILONS", ())
    outputs = ("-o", "batch.svg", "-o", "batch.html")
    assert collection.run("batch", "plan.json", "--users", "1e5", "--delta", "1e-8", *outputs) == 0
    assert "wrote the picture" in capsys.readouterr().err
    assert "<svg" in (collection.directory / "batch.svg").read_text()
    page = (collection.directory / "batch.html").read_text()
    assert "<svg" in page
    assert collection.plan.batch_guarantee(100_000, 1e-8).in_words().replace("'", "&#x27;") in page


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "give --users, or --target"),
        (("--users", "0"), "--users must be at least 1, got 0"),
        (("--users", "1e5", "--delta", "0"), "delta must lie between 1e-15 and 1, got 0"),
        (("--users", "1e5", "--delta", "1"), "delta must lie between 1e-15 and 1, got 1"),
        (("--users", "1e5", "--honest", "2"), "honest must be a share above 0 and at most 1, got 2"),
        (("--users", "1e5", "--reader", "operator"), "has the local epsilon only. Readers are ['reports', 'tally']"),
        (("--users", "1e5", "--epochs", "0"), "epochs must be a whole number between 1 and 10000, got 0"),
        (("--users", "1e5", "--epochs", "9", "--memoised"), "--memoised needs --cohort, the number of users who are"),
        (("--users", "1e5", "--cohort", "1e6"), "--cohort 1,000,000 exceeds the 100,000 --users of a batch"),
        (("--users", "1e5", "--cohort", "0"), "cohort must be a whole number between 1 and 100000, got 0"),
        (("--target", "0"), "the central epsilon must be positive, got 0"),
        (("--target", "1", "--epochs", "2"), "--target is for one batch; omit --epochs and --cohort"),
        (("--users", "1e5", "-o", "batch.txt"), "the output's name must end in one of"),
    ],
)
def test_refusals(collection, complaint, words, message):
    delta = () if "--delta" in words else ("--delta", "1e-8")
    arguments = [collection.path(word) if word.startswith("batch.") else word for word in (*words, *delta)]
    assert collection.run("batch", collection.path("plan.json"), *arguments) == 2
    assert message in complaint()
