"""Every planted fault is caught by the checks named for it, and the shipped client passes them all."""

import faults
import planting
import pytest

from sunzi.analysis import audit
from sunzi.plan import Plan, make_plan

pytestmark = pytest.mark.slow

SEED = 5
# Seeds are fixed; over all seeds, a correct client would fail a check once in 100,000 audits.
LEVEL = 0.99999


def control(fault):
    """The same audit of the shipped client."""
    plan = fault.plan()
    honest = Plan.from_json(plan.canonical).client(seed=SEED)
    return audit(plan, client=honest, trials=fault.trials, seed=SEED, confidence=LEVEL, **fault.options)


def failed(found):
    return {finding.check for finding in found.findings if not finding.passed}


@pytest.mark.parametrize("fault", faults.FAULTS, ids=lambda fault: fault.name)
def test_every_fault_is_caught(fault):
    plan = fault.plan()
    found = audit(
        plan, client=fault.client(plan, SEED), trials=fault.trials, seed=SEED, confidence=LEVEL, **fault.options
    )
    assert failed(found) >= fault.caught_by, [finding for finding in found.findings if not finding.passed]
    assert found.verdict == "violation" if fault.proves else not found.passed


_controls = {(fault.plan, fault.trials, str(fault.options)): fault for fault in faults.FAULTS}


@pytest.mark.parametrize("fault", _controls.values(), ids=lambda fault: fault.name)
def test_without_the_fault_every_check_passes(fault):
    found = control(fault)
    assert found.passed, [finding for finding in found.findings if not finding.passed]
    names = {finding.check for finding in found.findings}
    mine = [other for other in faults.FAULTS if other.plan is fault.plan]
    assert names >= set().union(*(other.caught_by for other in mine))


def test_there_are_faults_for_every_check_and_protocol():
    assert len(faults.FAULTS) >= 20
    assert len({fault.name for fault in faults.FAULTS}) == len(faults.FAULTS)
    assert {fault.plan().protocol.name for fault in faults.FAULTS} == {
        "grr", "ss", "ss-compact", "pgr", "rappor", "oue", "mss", "mss-compact", "ordered", "number", "tables"
    }  # fmt: skip
    caught = set().union(*(fault.caught_by for fault in faults.FAULTS))
    assert caught == {
        "epsilon", "words", "enumeration", "support", "selectors", "freshness", "single reports", "readable"
    }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "change", "verdict"),
    [("grr", 1, "violation"), ("mss", 1, "violation"), ("ss-compact", 2**40, "violation"), ("ss", -3, "deviation")],
)
def test_a_threshold_that_no_certificate_gives_is_caught(name, change, verdict):
    """The fault is in the plan, bypassing the checks on loading; the client follows the plan exactly."""
    plan = make_plan(name, 20, 1)
    for response in planting.responses(plan):
        planting.change(response, threshold=response.threshold + change)
    found = audit(plan, client=plan.client(seed=SEED), trials=1000, seed=SEED, confidence=LEVEL)
    assert "thresholds" in failed(found)
    assert found.verdict == verdict


def test_thresholds_of_bits_that_leak_are_caught():
    plan = make_plan("oue", 6, 1)
    planting.change(plan.protocol, false_threshold=plan.protocol.false_threshold - 2)
    found = audit(plan, client=plan.client(seed=SEED), trials=1000, seed=SEED, confidence=LEVEL)
    assert "thresholds" in failed(found)
    assert found.verdict == "violation"
