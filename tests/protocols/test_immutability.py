"""Protocols, block responses and designs are immutable, so a validated object stays valid."""

import copy
import inspect
import pickle
from dataclasses import FrozenInstanceError

import pytest

import sunzi
from sunzi.designs import BlockResponse, Cyclotomic, Projective


def parts(plan):
    """The protocol, and its responses and designs."""
    return [plan.protocol, *(part for response in plan.protocol.responses for part in (response, response.design))]


@pytest.mark.parametrize("name", sunzi.catalogue())
def test_no_attribute_can_be_set_or_deleted(name):
    plan = sunzi.make_plan(name, 40, 1)
    for part in parts(plan):
        bounds = getattr(part, "draw_bounds", None)
        assert bounds is None or not bounds.flags.writeable
        for attribute in [*vars(part), "anything"]:
            with pytest.raises(FrozenInstanceError, match=attribute):
                setattr(part, attribute, 0)
            with pytest.raises(FrozenInstanceError, match=attribute):
                delattr(part, attribute)


def test_cached_properties_are_kept():
    plan = sunzi.make_plan("mss", 40, 1)
    assert "gram" not in vars(plan.protocol)
    plan.estimate(plan.simulate([1, 2, 3] * 100, seed=1))
    assert plan.protocol.gram is vars(plan.protocol)["gram"]


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda part: pickle.loads(pickle.dumps(part))])
@pytest.mark.parametrize("name", ["ss-compact", "mss", "oue"])
def test_copies_are_equal_and_immutable(name, duplicate):
    for part in parts(sunzi.make_plan(name, 40, 1)):
        again = duplicate(part)
        assert again == part
        assert hash(again) == hash(part)
        with pytest.raises(FrozenInstanceError, match="epsilon"):
            again.epsilon = 100


def test_a_threshold_is_derived_not_given():
    assert list(inspect.signature(BlockResponse).parameters) == ["design", "epsilon", "word_bits"]


def test_subclasses_are_frozen_dataclasses_too():
    """dataclasses refuse every other subclass."""
    from dataclasses import dataclass

    with pytest.raises(TypeError, match="non-frozen"):

        @dataclass
        class Loose(sunzi.designs.Design):
            length: int


def test_designs_do_not_share_their_callers_lists():
    """A design made from a list must not change with the list: privacy depends on its block size."""
    union, polynomial = [0, 1], [1, 1, 1]
    cyclotomic, projective = Cyclotomic(13, 4, union), Projective(4, 2, polynomial)
    union.pop(), polynomial.pop()
    assert cyclotomic == Cyclotomic(13, 4, (0, 1))
    assert projective == Projective(4, 2, (1, 1, 1))
    assert hash(cyclotomic) == hash(Cyclotomic(13, 4, (0, 1)))
    assert isinstance(cyclotomic.union, tuple)
    assert isinstance(projective.polynomial, tuple)
