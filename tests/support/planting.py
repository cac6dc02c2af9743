"""How faults are planted in copies of the shipped client: a subclass that does one thing wrong replaces one object of a
new plan (its protocol, its block responses, a design) or the client.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from sunzi.batch_client import BatchClient
from sunzi.numerics.randomness import ArraySource, uniform_below, word_array
from sunzi.plan import Plan
from sunzi.protocols.base import Protocol


@dataclass(frozen=True)
class Fault:
    """A fault: ``plant`` makes the faulty client, ``caught_by`` names checks that must fail, and with ``proves`` the
    audit must prove more than ε.
    """

    name: str
    plan: Callable[[], Plan]
    plant: Callable[[Plan], type[BatchClient] | None]
    caught_by: frozenset[str]
    proves: bool = False
    trials: int = 100_000
    options: dict = field(default_factory=dict)

    def client(self, plan: Plan, seed: int) -> BatchClient:
        """A faulty client with a copy of this plan."""
        copied = Plan.from_json(plan.canonical)
        kind = self.plant(copied) or BatchClient
        return kind(copied, seed=seed)


def responses(plan):
    return plan.protocol.responses


def subclass(thing, **methods):
    """Change the class of an object to a subclass with these methods."""
    change(thing, __class__=type("Faulty" + type(thing).__name__, (type(thing),), methods))


def change(thing, **attributes):
    """Set attributes of a frozen protocol, response or design."""
    for name, value in attributes.items():
        object.__setattr__(thing, name, value)


def respond(function):
    """Replace the block response by ``function(response, words, values, source)``."""

    def plant(plan):
        for response in responses(plan):
            subclass(response, _respond=function)

    return plant


def design_respond(function):
    """Replace the design's response by ``function(shipped, design, values, truth, variates)``."""

    def plant(plan):
        for response in responses(plan):
            shipped = type(response.design).respond

            def faulty(design, values, truth, variates, shipped=shipped):
                return function(shipped, design, values, truth, variates)

            subclass(response.design, respond=faulty)

    return plant


def randomize(function):
    """Replace the protocol's randomisation by ``function(shipped, protocol, values, source)``."""

    def plant(plan):
        shipped = type(plan.protocol).randomize
        subclass(
            plan.protocol,
            randomize=lambda self, values, source: function(shipped, self, values, source),
            randomize_reports=Protocol.randomize_reports,  # no shortcut around the fault
        )

    return plant


def unary(function):
    """A unary protocol whose bits are ``function(protocol, words, own)``."""

    def shipped(_, protocol, values, source):
        words = word_array(source, values.size * protocol.domain_size).reshape(values.size, protocol.domain_size)
        own = np.arange(protocol.domain_size)[None, :] == values[:, None]
        return np.packbits(function(protocol, words, own), axis=1, bitorder="little")

    return randomize(shipped)


def client(kind):
    return lambda plan: kind


def truth_of(response, words):
    return words[:, 0] < np.uint64(response.threshold)


def answer(response, truth, words, values, source):
    """Continue as an honest response would."""
    variates = uniform_below(words[:, 1:], response.design.draw_bounds, source)
    return response.design.respond(values, truth, variates)


class Replaced(ArraySource):
    """A source that passes its first words, those of the selectors, through a function."""

    def __init__(self, source, change):
        self._source, self._change, self.word_bits = source, change, source.word_bits

    def array(self, count):
        words = word_array(self._source, count)
        change, self._change = self._change, lambda unchanged: unchanged
        return change(words)
