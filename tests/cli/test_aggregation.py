"""``sunzi aggregation``: the task of a plan."""

import json

import pytest

import sunzi


def test_the_parameters_as_a_table_and_as_data(counted, shown, capsys):
    plan = counted.path("plan.json")
    task = sunzi.aggregation_task(counted.plan, 1000, honest=0.9)
    assert counted.run("aggregation", "plan.json", "--min-batch", "1e3", "--honest", "9/10", "--format", "json") == 0
    assert json.loads(capsys.readouterr().out) == task.to_dict()
    text = shown("aggregation", plan, "--min-batch", "1000", "--honest", "9/10")
    assert "VDAF           Prio3Histogram" in text
    assert f"length         {task.length} counters, one per message" in text
    assert "ones           exactly 1 in a report" in text
    assert "minimum batch  1,112 reports" in text
    assert f"{task.report_bytes:,} bytes" in text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--min-batch", "0"), "min_batch must be a whole number of at least 1, got 0"),
        (("--min-batch", "10.5"), "--min-batch must be a whole number, got '10.5'"),
        (("--min-batch", "10", "--honest", "0"), "honest must be a share above 0 and at most 1, got 0"),
        (("--min-batch", "10", "--honest", "1.5"), "honest must be a share above 0 and at most 1, got 1.5"),
    ],
)
def test_refusals(counted, complaint, words, message):
    assert counted.run("aggregation", counted.path("plan.json"), *words) == 2
    assert message in complaint()
