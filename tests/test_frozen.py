"""What a plan was checked for stays true of it: its protocol, its responses and its designs refuse to be changed."""

import copy
import inspect
import pickle

import pytest

import sunzi
from sunzi.designs.response import BlockResponse


def parts(plan):
    """The protocol, and the responses and designs it is made of."""
    found = [plan.protocol]
    for response in [*getattr(plan.protocol, "responses", []), getattr(plan.protocol, "response", None)]:
        found += [response, response.design] if isinstance(response, BlockResponse) else []
    return found


@pytest.mark.parametrize("name", sunzi.catalogue())
def test_nothing_of_a_protocol_can_be_set_or_deleted(name):
    plan = sunzi.make_plan(name, 40, 1)
    for part in parts(plan):
        bounds = getattr(part, "draw_bounds", None)
        assert bounds is None or not bounds.flags.writeable
        for attribute in [*vars(part), "anything"]:
            with pytest.raises(AttributeError, match=f"{attribute} of .* cannot be changed"):
                setattr(part, attribute, 0)
            with pytest.raises(AttributeError, match="cannot be changed"):
                delattr(part, attribute)


def test_what_is_computed_late_is_still_kept():
    plan = sunzi.make_plan("mss", 40, 1)
    assert "gram" not in vars(plan.protocol)
    plan.estimate(plan.simulate([1, 2, 3] * 100, seed=1))
    assert plan.protocol.gram is vars(plan.protocol)["gram"]


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda part: pickle.loads(pickle.dumps(part))])
@pytest.mark.parametrize("name", ["ss-compact", "mss", "oue"])
def test_copies_are_frozen_too(name, duplicate):
    for part in parts(sunzi.make_plan(name, 40, 1)):
        again = duplicate(part)
        with pytest.raises(AttributeError, match="cannot be changed"):
            again.epsilon = 100


def test_classes_show_what_they_are_made_from():
    assert list(inspect.signature(BlockResponse).parameters) == ["design", "epsilon", "threshold", "word_bits"]


def test_a_class_of_ones_own_sets_its_attributes_in_any_of_its_constructors():
    class Louder(BlockResponse):
        def __init__(self, *given):
            super().__init__(*given)
            self.volume = 11

    shipped = sunzi.make_plan("grr", 5, 1).protocol.response
    louder = Louder(shipped.design, shipped.epsilon)
    assert louder.volume == 11
    with pytest.raises(AttributeError, match="volume of Louder cannot be changed"):
        louder.volume = 12
