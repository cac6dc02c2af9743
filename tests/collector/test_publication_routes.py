"""A collector that publishes closed epochs only, over HTTP."""

import io
import json

import pytest
from pyarrow import parquet
from running import running

import sunzi

pytestmark = pytest.mark.slow

PLAN = sunzi.make_plan("grr", ["a", "b", "c"], 2, groups={"country": ["DE", "FR"]})
AT = "/v1/collections/default/epochs/1"
READING = ("estimate.json", "estimate.csv", "tally", "health.json", "sum.json?value=a")


def batch(reports):
    return PLAN.client(seed=1).report_batch(["a"] * reports)


def test_results_are_published_when_the_epoch_is_closed(tmp_path):
    with running(
        tmp_path / "store.db", {"default": PLAN}, minimum_reports=100, publish_delta=1e-8, honest=0.9
    ) as service:
        service.send_batch(batch(800), groups="country=DE")
        service.send_batch(batch(150), groups="country=FR")
        service.send_batch(batch(20))
        for name in READING:
            refused = service.get(f"{AT}/{name}")
            assert (refused.status, refused.json()["error"]) == (409, "OpenEpoch")
        assert service.get(f"{AT}/status.json").json()["reports"] == 970
        early = service.get(f"{AT}/guarantee.json").json()
        assert (early["batch_guarantee"], early["facts"]) == (None, [])
        assert "until it is closed" in early["no_batch_guarantee"]

        assert service.post(f"{AT}/close").status == 200
        for name in READING:
            assert service.get(f"{AT}/{name}").status == 200
        expected = PLAN.batch_guarantee(170, 1e-8, honest=0.9, reader="tally")
        found = service.get(f"{AT}/guarantee.json").json()
        assert found["batch_guarantee"]["epsilon"] == expected.epsilon
        assert [(fact["name"], fact["text"]) for fact in found["facts"]] == expected.facts()
        assert service.get(f"{AT}/estimate.json").json()["batch_guarantee"] == found["batch_guarantee"]
        table = parquet.read_table(io.BytesIO(service.get(f"{AT}/estimate.parquet").body))
        assert json.loads(table.schema.metadata[b"batch_guarantee"]) == found["batch_guarantee"]

        assert [row["published"] for row in service.get(f"{AT}/groups.json").json()] == [True, False]
        assert service.get(f"{AT}/tally?group=country=DE").status == 200
        refused = service.get(f"{AT}/tally?group=country=FR")
        assert (refused.status, refused.json()["error"]) == (409, "TooFewReports")
        assert "the total without the published groups" in refused.json()["message"]


def test_trends_leave_out_open_epochs(tmp_path):
    with running(tmp_path / "store.db", {"default": PLAN}, publish_delta=1e-8, honest=1) as service:
        for number in (1, 2, 3):
            service.send_batch(batch(200), epoch=number)
            if number < 3:
                service.collector.open_next("default", old="close")
        trend = service.get("/v1/collections/default/trend.json").json()
        assert [epoch["epoch"] for epoch in trend["epochs"]] == [1, 2]
        refused = service.get("/v1/collections/default/difference.json?before=1&after=3")
        assert (refused.status, refused.json()["error"]) == (409, "OpenEpoch")


def test_without_the_option_nothing_is_claimed(tmp_path):
    with running(tmp_path / "store.db", {"default": PLAN}) as service:
        service.send_batch(batch(200))
        found = service.get(f"{AT}/estimate.json").json()
        assert found["batch_guarantee"] is None
        assert found["no_batch_guarantee"] == service.get(f"{AT}/guarantee.json").json()["no_batch_guarantee"]
        assert "only the epsilon of a report, 2, holds" in found["no_batch_guarantee"]
