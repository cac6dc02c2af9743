"""Groups over HTTP: uploads name declared groups, and the operator reads their tallies and estimates."""

import json

import pytest
from running import fresh_id, running

import sunzi
from sunzi.client.errors import ParameterError, ReportError, StoreError
from sunzi.collector.remote import RemoteCollector
from sunzi.collector.settings import Settings
from sunzi.tally import Tally

pytestmark = pytest.mark.slow

PLAN = sunzi.make_plan("grr", ["a", "b", "c"], 4, groups={"country": ["DE", "FR"], "release": ["1"]})
PLAIN = sunzi.make_plan("grr", ["a", "b", "c"], 4)
AT = "/v1/collections/default/epochs/1"


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    path = tmp_path_factory.mktemp("groups") / "store.db"
    with running(path, {"default": PLAN, "plain": PLAIN}, minimum_reports=10) as made:
        yield made


@pytest.fixture
def service(tmp_path):
    with running(tmp_path / "store.db", {"default": PLAN}, minimum_reports=10) as made:
        yield made


def batch(values):
    return PLAN.client(seed=1).report_batch(values)


def listed(service):
    return {row["group"]: row["reports"] for row in service.get(f"{AT}/groups.json").json()}


def test_groups_are_counted_with_the_report(service):
    many, few, single = batch(["a"] * 30), batch(["b"] * 5), PLAN.client(seed=2).report("c")
    identity = fresh_id()
    for outcome in ("counted", "repeated"):
        assert service.send_batch(many, identity, groups="country=DE,release=1").json()["outcome"] == outcome
    assert service.send_batch(few, groups="country=FR").json()["reports"] == 5
    assert service.send_report(PLAN, single, groups="country=DE").status == 200
    assert service.send_report(PLAN, single).status == 200
    assert service.tally() == PLAN.tally([many, few, single, single])
    assert service.tally(group="country=DE") == PLAN.tally([many, single])
    assert service.get(f"{AT}/groups.json").json() == [
        {"group": "country=DE", "attribute": "country", "value": "DE", "reports": 31, "published": True},
        {"group": "country=FR", "attribute": "country", "value": "FR", "reports": 5, "published": False},
        {"group": "release=1", "attribute": "release", "value": "1", "reports": 30, "published": True},
    ]
    rows = service.get(f"{AT}/groups.csv").body.decode().splitlines()
    assert rows[:2] == ["group,attribute,value,reports,published", "country=DE,country,DE,31,True"]
    assert Tally.from_bytes(service.get(f"{AT}/tally?group=country=DE").body) == PLAN.tally([many, single])
    found = service.get(f"{AT}/estimate.json?group=country%3DDE").json()
    assert (found["group"], found["reports"]) == ("country=DE", 31)
    assert max(found["histogram"], key=lambda row: row["frequency"])["label"] == "a"
    assert service.get(f"{AT}/health.json?group=country=DE").status == 200
    assert service.get(f"{AT}/estimate.json").json()["reports"] == 37, "not taken from the cache of the group"
    refused = service.get(f"{AT}/estimate.json?group=country=FR")
    assert (refused.status, refused.json()["error"]) == (409, "TooFewReports")
    assert "5 more reports of country=FR are needed" in refused.json()["message"]


def test_by_default_a_group_is_published_from_100_reports_on(tmp_path):
    with running(tmp_path / "store.db", {"default": PLAN}, minimum_reports=Settings(port=0).minimum_reports) as service:
        for country, number in (("DE", 100), ("FR", 99)):
            assert service.send_batch(batch(["a"] * number), groups=f"country={country}").status == 200
        published = [row["published"] for row in service.get(f"{AT}/groups.json").json()]
        assert published == [True, False, False]
        for name in ("estimate.json", "estimate.csv", "tally", "health.json"):
            assert service.get(f"{AT}/{name}?group=country=DE").status == 200
            answer = service.get(f"{AT}/{name}?group=country=FR")
            assert (answer.status, answer.json()["error"]) == (409, "TooFewReports")
            assert "results about fewer than 100 are not published" in answer.json()["message"]


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ("country=IT", "the group country has no value 'IT'"),
        ("city=Bonn", "this plan has no group 'city'"),
        ("country=DE,country=FR", "the group country is named twice"),
        ("country=DE,", "a group must be ATTRIBUTE=VALUE"),
        ("country", "an upload starts with a line"),
        ("country=D\x01", "an upload starts with a line"),
        ("country=" + "D" * 65, "a group must be ATTRIBUTE=VALUE"),
        ("country=" + "D" * 2000, "an upload starts with a line"),
        ("country=DE release=1", "an upload starts with a line"),
    ],
)
def test_bad_groups_count_nothing(shared, groups, message):
    body, single = batch(["a"]), PLAN.client(seed=2).report("c")
    for answer in (shared.send_batch(body, groups=groups), shared.send_report(PLAN, single, groups=groups)):
        assert answer.status == 400
        assert message in answer.json()["message"]
    assert shared.tally().reports == 0
    assert set(listed(shared).values()) == {0}


def test_groups_need_a_plan_that_declares_them(shared):
    answer = shared.send_report(PLAIN, PLAIN.client(seed=2).report("c"), collection="plain", groups="country=DE")
    assert (answer.status, answer.json()["message"]) == (
        400,
        "this plan declares no groups; send the report without groups",
    )
    assert shared.get("/v1/collections/plain/epochs/1/groups.json").json() == []
    assert shared.get("/v1/collections/plain/epochs/1/groups.csv").body == b"group,attribute,value,reports,published\n"


def test_groups_do_not_travel_in_the_address(shared):
    path = f"{AT}/reports?plan={PLAN.fingerprint}&group=country=DE"
    answer = shared.post(path, b"0" * 32 + b"\n" + PLAN.client(seed=2).report("c"))
    assert answer.status == 400
    assert "in the body" in answer.json()["message"]


@pytest.mark.parametrize("route", ["estimate.json", "tally", "health.json"])
def test_unknown_groups_are_refused(shared, route):
    for group in ("country=IT", "city=Bonn", "x", "", "country=DE,release=1"):
        answer = shared.get(f"{AT}/{route}?group={group}")
        assert (answer.status, answer.json()["error"]) == (400, "ParameterError")


def test_the_remote_collector_names_groups(service):
    remote = RemoteCollector(service.address, max_epsilon=4)
    epoch = remote.current()
    assert remote.upload(epoch, batch(["a"] * 20), groups={"country": "DE"}) == "counted"
    assert remote.upload(epoch, PLAN.client(seed=3).report("b"), groups={"country": "FR", "release": "1"}) == "counted"
    with pytest.raises(ParameterError, match="no value 'IT'"):
        remote.upload(epoch, batch(["a"]), groups={"country": "IT"})
    with pytest.raises(ReportError, match="the group country has no value"):
        remote.send(1, PLAN.fingerprint, batch(["a"]), bytes(16), groups={"country": "IT"})
    assert remote.groups() == {"country=DE": 20}, "the others are too small"
    assert remote.tally(group="country=DE")[1].reports == 20
    with pytest.raises(StoreError, match="9 more reports of country=FR"):
        remote.tally(1, "country=FR")
    remote.close()


def test_the_plan_is_served_with_its_groups(shared):
    envelope = json.loads(shared.get("/v1/collections/default/plan").body)
    assert envelope["plan"]["groups"] == {"country": ["DE", "FR"], "release": ["1"]}
