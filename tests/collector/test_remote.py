"""The operator's client of a collector: what a device does (tests/client/device/test_remote.py), and its answers."""

from contextlib import closing

import numpy as np
import pytest
from hostile import hostile, response
from running import running

import sunzi
from sunzi.client.errors import PlanError, PrivacyError, StoreError
from sunzi.collector.remote import RemoteCollector, TooFewReportsError

PLAN = sunzi.make_plan("ss-compact", [f"word {number}" for number in range(50)], 2, groups={"country": ["DE", "FR"]})


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    plans = {"default": PLAN, "empty": PLAN}
    with running(tmp_path_factory.mktemp("service") / "store.db", plans, minimum_reports=2) as made:
        yield made


@pytest.fixture(scope="module")
def filled(service):
    """The service, with 21 reports in its first collection."""
    with closing(RemoteCollector(service.address, max_epsilon=2)) as remote:
        epoch = remote.current()
        batch = epoch.plan.client(seed=1).report_indices(np.arange(20))
        assert remote.upload(epoch, batch, groups={"country": "DE"}) == "counted"
        assert remote.upload(epoch, epoch.plan.client(seed=4).report("word 3")) == "counted"
    return service


def test_plans_are_the_operators_own(service):
    """Those with estimates."""
    with closing(RemoteCollector(service.address, max_epsilon=2)) as remote:
        assert type(remote.current().plan) is sunzi.Plan
    with closing(RemoteCollector(service.address, max_epsilon=None)) as remote:
        assert remote.current().plan == PLAN
    with closing(RemoteCollector(service.address, max_epsilon="1/2")) as remote, pytest.raises(PrivacyError):
        remote.current()


def test_what_an_operator_reads(filled):
    with closing(RemoteCollector(filled.address, max_epsilon=2)) as remote:
        plan, tally = remote.tally()
        assert (plan, tally.reports) == (PLAN, 21)
        assert remote.tally(1, "country=DE")[1].reports == 20
        assert remote.groups() == {"country=DE": 20}
        assert [(epoch.number, epoch.reports, epoch.is_open) for epoch in remote.epochs()] == [(1, 21, True)]
        assert remote.served() == [f"{filled.address}/v1/collections/{name}" for name in ("default", "empty")]


def test_too_few_reports_are_an_error_of_their_own(filled):
    remote = RemoteCollector(f"{filled.address}/v1/collections/empty", max_epsilon=2)
    with closing(remote), pytest.raises(TooFewReportsError):
        remote.tally()


def test_a_collection_that_is_not_served(filled):
    remote = RemoteCollector(f"{filled.address}/v1/collections/other", max_epsilon=2)
    with closing(remote), pytest.raises(StoreError, match="is not served"):
        remote.epochs()


NESTED = b"[" * 100_000
WRONG = [
    b"",
    b"null",
    b'{"x":1}',
    b"[1]",
    b"[{}]",
    NESTED,
    NESTED + b"]" * 100_000,
    b'[{"collection":"default","epoch":true,"reports":1,"opened_at":1,"open":true}]',
    b'[{"collection":"default","epoch":1,"reports":-1,"opened_at":1,"open":true}]',
    b'[{"collection":"Default","epoch":1,"reports":1,"opened_at":1,"open":true}]',
    b'[{"group":"country=DE","reports":"1","published":true}]',
    b'{"format":"sunzi-plan","version":' + b"9" * 4000 + b"}",
]
CALLS = {
    "tally": lambda remote: remote.tally(),
    "epochs": lambda remote: remote.epochs(),
    "served": lambda remote: remote.served(),
    "groups": lambda remote: remote.groups(),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("body", WRONG, ids=range(len(WRONG)))
def test_wrong_answers_are_our_own_short_errors(body, call):
    with (
        hostile(response(body), b"") as address,
        closing(RemoteCollector(address, max_epsilon=2, patience=0)) as remote,
        pytest.raises((StoreError, PlanError)) as caught,
    ):
        CALLS[call](remote)
    assert len(str(caught.value)) < 2000
