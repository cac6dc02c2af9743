"""GET …/trend.json, .csv and .png."""

import csv
import io

import pytest
from epochs import filled_epoch, shares
from running import running

import sunzi
from sunzi.collector import trend_routes

PLAN = sunzi.make_plan("grr", ["apple", "banana", "cherry pie", "cherry"], 3)
TREND = "/v1/collections/fruit/trend.json"


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with running(tmp_path_factory.mktemp("store") / "s.db", {"fruit": PLAN, "new": PLAN}, minimum_reports=100) as made:
        for number in range(1, 9):
            counts = (3000, 2000, 1000, 0) if number < 5 else (1000, 2000, 3000, 0)
            filled_epoch(made.collector, "fruit", PLAN, shares(*counts), number)
        filled_epoch(made.collector, "fruit", PLAN, shares(50), 9, close=False)
        numbers = sunzi.make_plan("oue", 300, 3)
        for number in (1, 2):
            filled_epoch(made.collector, "numbers", numbers, shares(100, 200), number)
            filled_epoch(made.collector, "times", sunzi.make_ordered(0, 80, 8, 4), shares(100, 200), number)
        yield made


def test_the_trend_of_the_most_frequent_values(service):
    answer = service.get(f"{TREND}?top=2&confidence=0.9")
    assert answer.status == 200
    found = answer.json()
    assert found["collection"] == "fruit"
    assert [epoch["epoch"] for epoch in found["epochs"]] == list(range(1, 9))
    assert found["held_back"] == [9]
    assert found["epochs"][0].keys() == {
        "collection", "epoch", "open", "reports", "opened_at", "closed_at", "moment",
    }  # fmt: skip
    assert [value["label"] for value in found["values"]] == ["cherry pie", "banana"]
    first = found["values"][0]
    for name in ("frequency", "standard_error", "low", "high", "smoothed", "smoothed_error"):
        assert len(first[name]) == 8
    rows = zip(first["low"], first["frequency"], first["high"], strict=True)
    assert all(low < value < high for low, value, high in rows)
    assert (first["change_at"], first["changed"]) == (4, True)
    assert first["change"] == pytest.approx(1 / 3, abs=0.05)
    assert found["one_in"] == 400
    assert {(alarm["label"], alarm["since"], alarm["direction"]) for alarm in found["alarms"]} == {
        ("apple", 4, "down"), ("cherry pie", 4, "up"),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("query", "labels"),
    [
        ("search=CHERRY", ["cherry pie", "cherry"]),
        ("search=CHERRY&top=1", ["cherry pie"]),
        ("search=nothing", []),
        ("value=cherry&value=apple", ["cherry", "apple"]),
        ("sort=changed&top=2", ["apple", "cherry pie"]),
        ("last=3&top=1", ["cherry pie"]),
    ],
)
def test_values_that_are_named_or_searched(service, query, labels):
    found = service.get(f"{TREND}?{query}").json()
    assert sorted(value["label"] for value in found["values"]) == sorted(labels)


def test_a_row_per_value_and_epoch(service):
    rows = list(csv.DictReader(io.StringIO(service.get(f"{TREND[:-4]}csv?value=apple&value=cherry").body.decode())))
    series = service.get(f"{TREND}?value=apple").json()["values"][0]
    assert [(row["label"], row["epoch"]) for row in rows[:8]] == [("apple", str(number)) for number in range(1, 9)]
    assert [float(row["low"]) for row in rows[:8]] == series["low"]
    assert {row["alarm"] for row in rows[:8]} == {"", "down"}
    assert service.get(f"{TREND[:-4]}csv?search=nothing").body.startswith(b"label,epoch,")
    assert service.get(f"{TREND[:-4]}png?value=apple").body.startswith(b"\x89PNG")
    assert service.get("/v1/collections/numbers/trend.png").status == 200  # as many values as a picture shows
    assert service.get(f"{TREND[:-4]}png?search=nothing").status == 400


def test_values_without_labels(service):
    found = service.get("/v1/collections/numbers/trend.json?value=1&value=7").json()
    assert [value["index"] for value in found["values"]] == [1, 7]
    assert found["values"][0]["lack_of_fit"] is None  # a line through two epochs always fits
    searched = service.get("/v1/collections/numbers/trend.json?search=1").json()
    assert [value["index"] for value in searched["values"]] == [1]
    (value,) = service.get("/v1/collections/times/trend.json?value=15.5").json()["values"]
    assert value["label"] == "10 to 20"
    assert service.get("/v1/collections/times/trend.png").status == 200
    changes = service.get("/v1/collections/times/difference.json?before=1&after=2").json()["changes"]
    assert "10 to 20" in {change["label"] for change in changes}


@pytest.mark.parametrize(
    ("path", "status", "word"),
    [
        (f"{TREND}?value=plum", 400, "plum"),
        (f"{TREND}?value=apple&search=a", 400, "not both"),
        (f"{TREND}?one_in=5", 422, "one_in"),
        (f"{TREND}?last=1", 422, "last"),
        (f"{TREND}?top=0", 422, "top"),
        ("/v1/collections/new/trend.json", 409, "two epochs"),
        ("/v1/collections/old/trend.json", 404, "old"),
        ("/v1/collections/numbers/trend.json?value=300", 400, "300"),
    ],
)
def test_refusals(service, path, status, word):
    answer = service.get(path)
    assert (answer.status, word in answer.json()["message"]) == (status, True), answer


def test_progress(tmp_path, monkeypatch):
    monkeypatch.setattr(trend_routes, "_SECONDS", 0.0)
    with running(tmp_path / "s.db", {"fruit": PLAN}) as service:
        for number in range(1, 4):
            filled_epoch(service.collector, "fruit", PLAN, shares(30, 20, 10), number)
        first = service.get(TREND)
        assert (first.status, first.json()) == (202, {"computed": 1, "epochs": 3})
        assert first.headers["Retry-After"] == "1"
        assert [service.get(TREND).status for _ in range(2)] == [202, 200]


def test_alarms_are_a_metric(tmp_path):
    with running(tmp_path / "s.db", {"fruit": PLAN, "quiet": PLAN}) as service:
        for number in range(1, 6):
            counts = (3000, 2000, 1000, 0) if number < 5 else (1000, 2000, 3000, 0)
            filled_epoch(service.collector, "fruit", PLAN, shares(*counts), number)
        lines = service.get("/metrics").body.decode().splitlines()
        assert any("HELP sunzi_alarms" in line and "by chance, one in 100 epochs" in line for line in lines)
        found = {line for line in lines if line.startswith("sunzi_alarms")}
        assert found == {
            f'sunzi_alarms{{collection="{name}",direction="{direction}"}} {count}'
            for name, count in (("fruit", "1.0"), ("quiet", "0.0"))
            for direction in ("up", "down")
        }
