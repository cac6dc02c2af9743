"""The client: what it refuses to randomise, and which words decide its reports."""

from fractions import Fraction

import numpy as np
import pytest

from sunzi.client import Plan
from sunzi.client.errors import DomainError, ParameterError, PlanError, PrivacyError
from sunzi.domains.texts import OpenDomain
from sunzi.numerics.randomness import ScriptedSource
from sunzi.plan import make_plan
from sunzi.protocols.registry import catalogue


def test_a_client_may_cap_epsilon_and_pin_the_plan():
    plan = make_plan("grr", 5, "3/2")
    for cap in (2, 1.5, "3/2", Fraction(3, 2)):
        assert plan.client(max_epsilon=cap).report(1)
    for cap in (1, 1.4999, "1/2"):
        with pytest.raises(PrivacyError, match="accepts at most"):
            plan.client(max_epsilon=cap)
    for pin in (plan.fingerprint, plan.fingerprint.upper(), bytes.fromhex(plan.fingerprint)):
        assert plan.client(fingerprint=pin).report(1)
    for pin in (make_plan("grr", 6, "3/2").fingerprint, bytes(32), "", plan.fingerprint[:16], "not hexadecimal"):
        with pytest.raises(PrivacyError, match="pinned"):
            plan.client(fingerprint=pin)
    with pytest.raises(ParameterError, match="epsilon"):
        plan.client(max_epsilon="much")
    with pytest.raises(ParameterError, match="fingerprint must be hexadecimal text or bytes, got 5"):
        plan.client(fingerprint=5)


@pytest.mark.parametrize("name", catalogue())
def test_all_ways_to_report_draw_the_same_words(name):
    """Values, indices and lists of one value; a batch has the reports of a list."""
    plan = make_plan(name, [f"label {index}" for index in range(12)], 1)
    one = plan.client(seed=5).report("label 7")
    assert plan.client(seed=5).report_index(7) == one
    assert plan.client(seed=5).reports(["label 7"]) == [one]
    values = ["label 3", "label 0", "label 11"]
    batch = plan.client(seed=5).report_batch(values)
    assert plan.client(seed=5).report_indices(np.array([3, 0, 11])) == batch
    assert plan.tally(batch) == plan.tally(plan.client(seed=5).reports(values))


def test_only_the_operating_systems_words_are_private():
    plan = make_plan("grr", 5, 1)
    assert plan.client().is_private
    for client in (plan.client(seed=1), plan.client(source=ScriptedSource(np.zeros(9, dtype=np.uint64)))):
        assert not client.is_private
        assert "REPRODUCIBLE" in repr(client)
    with pytest.raises(ParameterError, match="a seed or a source, not both"):
        plan.client(seed=1, source=ScriptedSource(np.zeros(9, dtype=np.uint64)))


def test_a_background_report_is_of_a_uniform_value():
    """The first word alone chooses the value: ⌊word·5/2^64⌋. At epsilon 32 the report is the value itself."""
    plan = make_plan("grr", 5, 32)
    for value in range(5):
        words = [(value << 64) // 5 + (1 << 40), 0, 0]
        client = plan.client(source=ScriptedSource(np.array(words, dtype=np.uint64)))
        assert client.report_background() == bytes([value])


def test_values_outside_the_domain_are_refused_before_a_word_is_drawn():
    plan = make_plan("grr", 5, 1)
    source = ScriptedSource(np.zeros(9, dtype=np.uint64))
    client = plan.client(source=source)
    for ask in (
        lambda: client.report(5),
        lambda: client.report(True),
        lambda: client.report_index(-1),
        lambda: client.report_batch([0, 5]),
        lambda: client.report_indices(np.array([0, -1])),
        lambda: client.reports([None]),
    ):
        with pytest.raises(DomainError):
            ask()
    assert source.remaining == 9
    assert plan.tally(client.report_batch([])).reports == 0


@pytest.mark.parametrize(
    ("plan", "bits", "work"),
    [
        (make_plan("grr", 5, 1), 3, 2),
        (make_plan("oue", 100, 1), 100, 100),
        (make_plan("mss", 60, 1, moduli=(5, 89)), 1 + 89, 1 + 2 + 24 + 89),
    ],
    ids=["a block", "bits", "subsets"],
)
def test_a_client_limits_what_a_report_costs(plan, bits, work):
    """Each limit is the largest number that is accepted, and the error names the number."""
    assert (plan.protocol.report_layout.max_bits, plan.protocol.work) == (bits, work)
    assert plan.client(max_bits=bits, max_work=work).report(1)
    with pytest.raises(PlanError, match=f"takes {bits} bits, this client accepts at most {bits - 1}"):
        plan.client(max_bits=bits - 1)
    with pytest.raises(PlanError, match=f"takes {work} steps, this client accepts at most {work - 1}"):
        plan.client(max_work=work - 1)


def test_a_hostile_plan_is_refused_by_default():
    """16 million bits are within the format, but too much for a device that did not ask for them."""
    plan = make_plan("oue", 1 << 24, 1)
    with pytest.raises(PlanError, match="takes 16,777,216 steps, this client accepts at most 2,097,152"):
        plan.client()
    with pytest.raises(PlanError, match="takes 16,777,216 steps, this client accepts at most 2,097,152"):
        plan.client(max_bits=1 << 24)
    assert plan.client(max_bits=1 << 24, max_work=1 << 24).plan is plan


def test_an_index_is_checked_before_a_word_is_drawn():
    """Of a record it is a number, of a text a row of digits."""
    source = ScriptedSource(np.zeros(0, dtype=np.uint64))
    texts = make_plan("prefixes", OpenDomain("letters", longest=2), 1, cells=1000)
    wrong = {make_plan("grr", 5, 1): [-1, 5, 1.0, "1", None, (1,)], texts: [1, (1, 2), (1, 2, 99), (1.0, 2, 27)]}
    for plan, indices in wrong.items():
        for index in indices:
            with pytest.raises(DomainError):
                Plan.from_json(plan.canonical).client(source=source).report_index(index)
