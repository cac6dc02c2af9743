"""Residues through block responses: which plans are valid, and what a report says."""

from fractions import Fraction

import numpy as np
import pytest

from sunzi.client.errors import PlanError
from sunzi.designs.cyclotomic import Cyclotomic
from sunzi.designs.response import BlockResponse
from sunzi.designs.singletons import Singletons
from sunzi.designs.subsets import Subsets
from sunzi.numerics.randomness import ReproducibleSource, ScriptedSource
from sunzi.plan import make_plan
from sunzi.protocols.modular import CompactModularSubsetSelection, ModularSubsetSelection

ONE = Fraction(1)


def responses(*designs, epsilon=ONE):
    return tuple(BlockResponse(design, epsilon) for design in designs)


@pytest.mark.parametrize(
    ("designs", "reason"),
    [
        ((), "needs between 1 and 256 moduli, got 0"),
        ((Singletons(7), Singletons(9)), "moduli must be prime, got 9"),
        ((Singletons(7), Subsets(7, 2)), "moduli must be distinct"),
        ((Singletons(5), Singletons(7)), "must add up to at least 19 to distinguish 20 values, got 10"),
        ((Singletons(23), Cyclotomic(13, 4)), "mss uses the designs"),
    ],
)
def test_plans_that_cannot_work_are_refused(designs, reason):
    with pytest.raises(PlanError, match=reason):
        ModularSubsetSelection(20, responses(*designs))


def test_a_plan_that_no_device_can_afford_is_refused_before_anything_is_built(monkeypatch):
    monkeypatch.setattr(BlockResponse, "from_parameters", lambda *_: pytest.fail("a response was built"))
    listed = [{"design": "subsets", "points": points} for points in (16777213, 7)]
    with pytest.raises(PlanError, match="at most 16777216 points in total, got 16777220"):
        ModularSubsetSelection.from_parameters(1 << 24, ONE, {"responses": listed})


def test_blocks_with_different_budgets_are_refused():
    mixed = responses(Singletons(11)) + responses(Singletons(13), epsilon=Fraction(2))
    with pytest.raises(PlanError, match="must have the same epsilon"):
        ModularSubsetSelection(20, mixed)


def test_the_first_word_selects_the_modulus_and_the_report_is_of_the_residue():
    """At ε = 32 every block response tells the truth for almost all words."""
    blocks = responses(Singletons(11), Singletons(13), Singletons(17), epsilon=Fraction(32))
    protocol = ModularSubsetSelection(30, blocks)
    for selector, modulus in enumerate(protocol.moduli):
        words = [(selector << 64) // 3 + (1 << 40), 0, 1 << 40]
        messages = protocol.randomize(np.array([29]), ScriptedSource(words))
        assert messages.selectors.tolist() == [selector]
        assert messages.parts[selector].tolist() == [29 % modulus]
        assert len(messages) == 1


@pytest.mark.parametrize("name", ["mss", "mss-compact"])
def test_messages_are_read_back_and_counted_by_block(name):
    protocol = make_plan(name, 100, 1, moduli=(31, 37, 53)).protocol
    messages = protocol.randomize(np.arange(400) % 100, ReproducibleSource(1))
    again = protocol.decode(protocol.encode(messages))
    assert protocol.encode(again).in_order() == protocol.encode(messages).in_order()
    counters = protocol.count(messages)
    assert protocol.count(again) == counters
    start = 0
    for response, part in zip(protocol.responses, protocol.split(messages)[1], strict=True):
        own = counters.part(start, start + response.design.counter_count)
        assert own == response.design.count(part)
        start += response.design.counter_count


def test_designs_of_the_two_protocols():
    moduli = (29, 31, 37)
    subsets = ModularSubsetSelection.choose(60, ONE, moduli=moduli)
    compact = CompactModularSubsetSelection.choose(60, ONE, moduli=moduli)
    assert [response.design.kind for response in subsets.responses] == ["subsets"] * 3
    assert {response.design.kind for response in compact.responses} <= {"cyclotomic", "singletons"}
    assert subsets.moduli == compact.moduli == moduli
    assert {response.epsilon for response in subsets.responses} == {ONE}


def test_a_plan_lists_its_responses():
    protocol = make_plan("mss-compact", 60, 1, moduli=(29, 37)).protocol
    stated = protocol.parameters()
    assert type(protocol).from_parameters(60, ONE, stated) == protocol
    for wrong in ({"responses": {}}, {"responses": stated["responses"] * 200}, {}, stated | {"comment": 1}):
        with pytest.raises(PlanError):
            type(protocol).from_parameters(60, ONE, wrong)
