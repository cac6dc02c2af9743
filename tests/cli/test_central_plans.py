"""``sunzi plan --central``: the plan of least error for a central guarantee."""

import json
import re

import pytest

from sunzi.cli.main import main
from sunzi.plan import load_plan
from sunzi.planning import plan_for_batch

WORDS = ("plan", "--size", "100", "--central", "1,1e-8", "--users", "1e4")


def test_the_plan_beside_other_methods(shown, capsys, tmp_path):
    found = plan_for_batch(100, 10_000, 1, 1e-8)
    plan, page = tmp_path / "plan.json", tmp_path / "plan.html"
    text = re.sub(r"\x1b\[\d*m", "", shown(*WORDS, "-o", str(plan), "-o", str(page)))
    assert "wrote the page" in capsys.readouterr().err
    assert load_plan(plan) == found.plan
    assert "100 values, 10,000 users, central epsilon 1: grr" in page.read_text()
    assert "100 values, 10,000 users, central epsilon 1 with delta 1e-08" in text
    assert "this plan, grr           collector     5.51         9.84     0.0984 %   1.36" in text
    for name, value in found.guarantee.facts():
        assert f"{name:15}  {value}" in text
    assert found.guarantee.in_words() in text.replace("\n", " ")
    assert found.warning in text.replace("\n", " ")


def test_data_labels_groups_and_a_limit(tmp_path, capsys):
    (tmp_path / "labels.txt").write_text("a\nb\nc\nrest\n")
    domain = ("--domain", str(tmp_path / "labels.txt"), "--other", "rest", "--group", "country=DE,FR")
    output = ("-o", str(tmp_path / "plan.json"), "--format", "json")
    limits = ("--max-epsilon", "1.5", "--honest", ".9")
    assert main(["plan", *domain, "--central", "0.5,1e-9", "--users", "1e4", *limits, *output]) == 0
    document = json.loads(capsys.readouterr().out)
    plan = load_plan(tmp_path / "plan.json")
    assert document["fingerprint"] == plan.fingerprint
    assert plan.domain.other == "rest"
    assert float(plan.epsilon) == document["epsilon"] == document["methods"][0]["local_epsilon"] == 1.5
    assert document["guarantee"]["honest_reports"] == 9000
    assert document["guarantee"]["epsilon"] <= document["target_epsilon"] == 0.5


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--central", "1", "--users", "1e4"), "--central must be an epsilon and a delta such as 1,1e-8, got '1'"),
        (("--central", "1,1e-8"), "--central needs --users"),
        (("--central", "1,1e-8", "--users", "1e4", "--epsilon", "1"), "--epsilon has no effect with --central"),
        (("--central", "1,1e-8", "--users", "1e4", "--histogram", "skewed"), "--histogram has no effect with"),
        (("--central", "1,1e-8", "--users", "1e4", "--max-bits", "9"), "--max-bits has no effect with --central"),
        (("--central", "1,2", "--users", "1e4"), "delta must lie between 1e-15 and 1, got 2"),
        (("--central", "0,1e-8", "--users", "1e4"), "epsilon must be positive, got 0"),
        (("--central", "1,1e-8", "--users", "0"), "users must be a whole number between 1 and"),
        (("--epsilon", "1", "--users", "1e4", "--max-epsilon", "2"), "--max-epsilon needs --central"),
        (("--epsilon", "1", "--users", "1e4", "--honest", "1"), "--honest needs --central"),
    ],
)
def test_refusals(complaint, words, message):
    assert main(["plan", "--size", "10", *words]) == 2
    assert message in complaint()


@pytest.mark.parametrize("domain", [("--number", "0:9"), ("--open", "a-z")])
def test_other_plans_are_refused(complaint, domain):
    assert main(["plan", *domain, "--central", "1,1e-8", "--users", "9"]) == 2
    assert "--central is for a list of values; for other plans give --epsilon" in complaint()
