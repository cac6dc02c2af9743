"""The OpenAPI description, and requests that schemathesis generates from it: none may cause a 5xx."""

import subprocess
import sys

import numpy as np
import pytest
from running import running

import sunzi

pytestmark = pytest.mark.slow

PLAN = sunzi.make_plan("ss-compact", 50, 2, groups={"country": ["DE", "FR"]})

CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"
SHORT = ("--max-examples", "8", "--phases", "examples,fuzzing")
LONG = ("--max-examples", "25", "--phases", "examples,coverage,fuzzing")


@pytest.fixture
def service(tmp_path):
    with running(tmp_path / "store.db", {"default": PLAN}) as made:
        made.send_batch(PLAN.client(seed=1).report_indices(np.arange(500) % 50), groups="country=DE")
        yield made


def test_the_description_names_every_route_and_its_refusals(service):
    described = service.get("/openapi.json").json()
    base = "/v1/collections/{collection}/epochs/{epoch}"
    assert set(described["paths"]) == {
        "/health",
        "/ready",
        "/metrics",
        "/v1/collections",
        "/v1/collections/{collection}/plan",
        "/v1/collections/{collection}/epochs",
        "/v1/collections/{collection}/difference.{form}",
        "/v1/collections/{collection}/trend.{form}",
        f"{base}/guarantee.json",
        *(
            f"{base}/{name}"
            for name in ("plan", "plan/{fingerprint}", "reports", "batches", "close", "tokens", "subtract", "tally")
        ),
        *(
            f"{base}/{name}.{{form}}"
            for name in ("status", "estimate", "answers", "sum", "progress", "keys", "groups", "health", "discover")
        ),
    }
    upload = described["paths"][f"{base}/batches"]["post"]
    assert {"200", "400", "404", "410", "413", "422", "429", "503"} <= set(upload["responses"])
    assert "application/octet-stream" in upload["requestBody"]["content"]


def test_generated_requests_never_cause_a_server_error(service, pytestconfig):
    """Closing is excluded, because it would end the epoch that all other requests use. With ``--long``, five
    times as many requests."""
    extent = LONG if pytestconfig.getoption("--long") else SHORT
    run = subprocess.run(
        [
            *(sys.executable, "-m", "schemathesis.cli", "run", f"{service.address}/openapi.json"),
            *("--checks", CHECKS, *extent, "--seed", "1", "--workers", "1"),
            *("--exclude-path-regex", "close$", "--request-timeout", "30", "--no-color"),
        ],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert run.returncode == 0, run.stdout[-6000:] + run.stderr[-2000:]
    assert service.get("/ready").status == 200
    assert service.send_batch(PLAN.client(seed=2).report_indices(np.arange(50))).status == 200
