"""GET …/sum and …/difference: the library's own numbers, and what is refused."""

import csv
import io
import json

import pytest
from epochs import filled_epoch, shares
from running import running

import sunzi
from sunzi.collector.stores import find_epoch, stored_tally

PLAN = sunzi.make_plan("ss-compact", ["apple", "pear, ripe", "cherry pie", "cherry"], 3)
OTHER = sunzi.make_plan("grr", ["apple", "pear, ripe", "cherry pie", "cherry"], 2)
GROUPED = sunzi.make_plan("grr", ["a", "b"], 4, groups={"country": ["DE", "FR"], "release": ["1"]})
BASE = "/v1/collections/fruit"


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    directory = tmp_path_factory.mktemp("store")
    settings = {"minimum_reports": 100, "audit_log": str(directory / "audit.log")}
    with running(directory / "s.db", {"fruit": PLAN}, **settings) as made:
        filled_epoch(made.collector, "fruit", PLAN, shares(3000, 2000, 1000), 1)
        filled_epoch(made.collector, "fruit", PLAN, shares(2000, 2000, 2000), 2)
        filled_epoch(made.collector, "fruit", OTHER, shares(3000, 2000, 1000), 3)
        filled_epoch(made.collector, "fruit", PLAN, shares(50), 4, close=False)
        filled_epoch(made.collector, "numbers", sunzi.make_plan("oue", 9, 3), shares(100, 200), 1)
        filled_epoch(made.collector, "numbers", sunzi.make_plan("oue", 8, 3), shares(200, 100), 2)
        made.collector.open("grouped", GROUPED)
        for group, values in (("country=DE", shares(500, 100)), ("country=FR,release=1", shares(100, 500))):
            batch = GROUPED.client(seed=1).report_indices(values)
            assert made.send_batch(batch, collection="grouped", groups=group).status == 200
        made.log = directory / "audit.log"
        yield made


def estimated(service, number, plan=PLAN):
    store = service.collector.store
    return plan.estimate(stored_tally(store, find_epoch(store, "fruit", number), plan))


def test_a_sum_has_the_librarys_interval(service):
    query = "value=apple&value=pear,%20ripe&confidence=0.9&target=population"
    found = service.get(f"{BASE}/epochs/1/sum.json?{query}").json()
    answer = estimated(service, 1).sum(["apple", "pear, ripe"], 0.9, target="population")
    assert (found["frequency"], found["low"], found["high"]) == (answer.value, answer.low, answer.high)
    assert (found["values"], found["epoch"], found["reports"]) == (["apple", "pear, ripe"], 1, 6000)
    (row,) = csv.DictReader(io.StringIO(service.get(f"{BASE}/epochs/1/sum.csv?{query}").body.decode()))
    assert (row["values"], float(row["frequency"])) == ("apple + pear, ripe", answer.value)
    assert service.get("/v1/collections/numbers/epochs/1/sum.json?value=0&value=1").json()["count"] > 250


@pytest.mark.parametrize(("after", "plan"), [(2, PLAN), (3, OTHER)])
def test_a_difference_is_the_librarys(service, after, plan):
    found = service.get(f"{BASE}/difference.json?before=1&after={after}&confidence=0.9&verdict=discoveries").json()
    expected = sunzi.difference(estimated(service, 1), estimated(service, after, plan))
    assert found["p_value"] == expected.p_value()
    assert found["changed"] == expected.changed(0.1, "discoveries").sum()
    assert (found["before"]["epoch"], found["after"]["epoch"], found["domain_size"]) == (1, after, 4)
    assert (found["before"]["reports"], found["target"], found["verdict"]) == (6000, "population", "discoveries")
    for row, change in zip(found["changes"], expected.top(4, 0.9, "discoveries"), strict=True):
        assert row == {name: getattr(change, name) for name in row}
    assert found["changes"][0].keys() >= {"label", "before", "after", "change", "low", "high", "changed"}


def test_a_difference_in_other_formats(service):
    path = f"{BASE}/difference.csv?before=1&after=2"
    rows = list(csv.DictReader(io.StringIO(service.get(path).body.decode())))
    assert [row["label"] for row in rows[:2]] in (["apple", "cherry pie"], ["cherry pie", "apple"])
    few = service.get(f"{path}&search=CHERRY&top=1").body.decode().splitlines()
    assert len(few) == 2
    assert few[1].startswith("cherry pie,")
    assert service.get(f"{path}&search=nothing").body.decode().splitlines() == [few[0]]
    assert service.get(f"{BASE}/difference.png?before=1&after=2").body.startswith(b"\x89PNG")


def test_groups_are_compared_and_added_up(service):
    path = "/v1/collections/grouped"
    query = "before=1&after=1&before_group=country=DE&after_group=country=FR"
    found = service.get(f"{path}/difference.json?{query}").json()
    assert (found["before"]["group"], found["after"]["group"], found["changed"]) == ("country=DE", "country=FR", 2)
    assert found["before"]["reports"] == 600
    answer = service.get(f"{path}/epochs/1/sum.json?value=a&group=country=FR").json()
    assert (answer["group"], answer["reports"]) == ("country=FR", 600)
    for groups in ("before_group=country=DE", "before_group=country=DE&after_group=release=1"):
        refused = service.get(f"{path}/difference.json?before=1&after=1&{groups}")
        assert (refused.status, "both sides contain reports" in refused.json()["message"]) == (400, True)


@pytest.mark.parametrize(
    ("path", "status", "word"),
    [
        (f"{BASE}/epochs/1/sum.json", 422, "value"),
        (f"{BASE}/epochs/1/sum.json?value=appel", 400, "did you mean 'apple'?"),
        (f"{BASE}/epochs/1/sum.json?value=apple&value=apple", 400, "listed twice"),
        (f"{BASE}/epochs/4/sum.json?value=apple", 409, "50 more reports are needed"),
        (f"{BASE}/epochs/9/sum.json?value=apple", 404, "9"),
        (f"{BASE}/difference.json?before=1", 422, "after"),
        (f"{BASE}/difference.json?before=1&after=1", 400, "both sides contain reports of epoch 1"),
        (f"{BASE}/difference.json?before=1&after=4", 409, "50 more reports are needed"),
        (f"{BASE}/difference.json?before=1&after=9", 404, "9"),
        (f"{BASE}/difference.json?before=1&after=2&verdict=some", 422, "verdict"),
        (f"{BASE}/difference.png?before=1&after=2&search=a", 400, "use csv or json"),
        ("/v1/collections/numbers/difference.json?before=1&after=2", 409, "different domains, 9 and 8 values"),
    ],
)
def test_refusals(service, path, status, word):
    answer = service.get(path)
    assert (answer.status, word in answer.json()["message"]) == (status, True), answer


def test_questions_are_audited(service):
    service.get(f"{BASE}/difference.json?before=1&after=2")
    service.get(f"{BASE}/epochs/1/sum.json?value=apple")
    actions = [json.loads(line)["action"] for line in service.log.read_text().splitlines()]
    assert actions[-2:] == ["difference_of_epochs", "sum_of_values"]
