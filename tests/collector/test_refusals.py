"""Errors as HTTP responses: a status for every error, and one JSON shape."""

import asyncio
import json

import pytest
from fastapi.exceptions import RequestValidationError
from running import running
from starlette.exceptions import HTTPException

import sunzi
from sunzi import errors
from sunzi.client.errors import (
    BudgetError,
    DomainError,
    PrivacyError,
    ReportError,
    StoreError,
)
from sunzi.collector import refusals
from sunzi.collector.collector import ClosedEpochError, MisdirectedError, UnknownEpochError
from sunzi.collector.refusals import RefusalError, refusal, refuse, refuse_http, refuse_invalid
from sunzi.collector.writer import OverloadError

PLAN = sunzi.make_plan("grr", 4, 1)


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    monkeypatch.setattr(refusals, "_REFUSAL_SECONDS", 0)


def answer(handler, error):
    response = asyncio.run(handler(None, error))
    return response.status_code, json.loads(response.body), response.headers


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (UnknownEpochError("x"), 404),
        (ClosedEpochError("x"), 410),
        (MisdirectedError("x"), 421),
        (OverloadError("x"), 503),
        (StoreError("x"), 503),
        (errors.EstimateError("x"), 409),
        (errors.MissingExtraError("pictures", "plot"), 501),
        (ReportError("x"), 400),
        (PrivacyError("x"), 400),
        (DomainError("x"), 400),
    ],
    ids=lambda value: type(value).__name__,
)
def test_every_error_has_its_status(error, status):
    found, body, headers = answer(refuse, error)
    told = "the store is not available now; send it again later" if type(error) is StoreError else str(error)
    assert (found, body) == (status, {"error": type(error).__name__, "message": told})
    assert ("Retry-After" in headers) == (status == 503)


def test_an_error_without_a_status_is_the_servers_fault():
    assert answer(refuse, BudgetError("x"))[0] == 500


def test_a_refusal_names_its_own_status_and_when_to_retry():
    status, body, headers = answer(refuse, RefusalError(429, "Quota", "too many", retry_after=1.2))
    assert (status, body) == (429, {"error": "Quota", "message": "too many"})
    assert headers["Retry-After"] == "2"
    assert refusal(503, "Busy", "later", retry_after=0.0).headers["Retry-After"] == "1"


def test_a_missing_secret_says_which_scheme():
    assert refusal(401, "Secret", "missing").headers["WWW-Authenticate"] == "Bearer"


def test_invalid_parameters_are_named_and_their_values_are_not():
    error = RequestValidationError([{"loc": ("query", "id"), "msg": "too short", "input": "a-secret-value"}])
    status, body, _ = answer(refuse_invalid, error)
    assert (status, body) == (422, {"error": "Invalid", "message": "query.id: too short"})


def test_errors_of_the_framework_have_the_same_shape():
    status, body, headers = answer(refuse_http, HTTPException(405, "Method Not Allowed", {"Allow": "GET"}))
    assert (status, body) == (405, {"error": "HTTP", "message": "Method Not Allowed"})
    assert headers["Allow"] == "GET"


@pytest.mark.slow
def test_a_failing_store_is_not_named_to_strangers(tmp_path, monkeypatch, caplog):
    with running(tmp_path / "secret-place.db", {"default": PLAN}) as service:

        def fail(*_):
            raise StoreError(f"{tmp_path}/secret-place.db: disk I/O error")

        monkeypatch.setattr(service.collector.store, "commit", fail)
        monkeypatch.setattr(service.collector.store, "check", fail)
        for answer in (service.send_batch(PLAN.client(seed=1).report_batch([0, 1])), service.get("/ready")):
            assert (answer.status, answer.headers["Retry-After"] is not None) == (503, True)
            assert b"secret" not in answer.body
            assert str(tmp_path).encode() not in answer.body
    assert "secret-place.db: disk I/O error" in caplog.text
