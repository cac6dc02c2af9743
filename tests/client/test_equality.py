"""Devices and operators make the same reports: the trusted randomisers and the vectorised ones, word for word."""

import random
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st
from vectors import any_text, edges, make_plans, make_record_plans, make_text_plans, random_value, words_needed

import sunzi
from sunzi.client import DomainError, Plan
from sunzi.designs import response
from sunzi.numerics.randomness import ScriptedSource
from sunzi.protocols import unary

LARGEST = (1 << 64) - 1
NAMES = (*sunzi.catalogue(), "ordered", "number", "tables", "prefixes")
SEEDS = st.integers(0, (1 << 32) - 1)
KINDS = ("random", "edges", "zeros first", "zeros", "largest first", "largest")
"""Scripts of words. Zeros are rejected below every bound that is no power of two."""


@cache
def plans():
    """For every protocol, pairs of the same plan, as an operator and as a device have it."""
    chance, found = random.Random(29), {name: [] for name in NAMES}
    fields = [sunzi.make_plan("pgr", size, 1, order=order) for size, order in ((7, 2), (13, 3), (20, 4), (60, 9))]
    for plan in [
        *make_plans(chance),
        *make_plans(chance),
        *make_record_plans(chance),
        *make_text_plans(chance),
        *fields,
    ]:
        found[plan.protocol.name].append((plan, Plan.from_json(plan.canonical)))
    return found


def script(chance, plan, kind, count):
    """Words of one kind for this many reports, and enough random ones to end all rejections."""
    needed = count * words_needed(plan) + count
    spare = [chance.getrandbits(64) for _ in range(2 * needed + 64)]
    first = min(needed, 3 * chance.randrange(1, 20))
    if kind == "random":
        words = []
    elif kind == "edges":
        words = [chance.choice(edges(plan)) for _ in range(needed)]
    else:
        word = 0 if kind.startswith("zeros") else LARGEST
        words = [word] * (first if kind.endswith("first") else needed)
    return words + spare


def made(words, action):
    """What an action makes of these words, and how many it uses."""
    source = ScriptedSource(words)
    return action(source), len(words) - source.remaining


def drawn(seed, name):
    chance = random.Random(seed)
    return chance, *chance.choice(plans()[name])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", NAMES)
@given(SEEDS)
def test_single_reports(name, kind, seed):
    """Also of values in a batch of one."""
    chance, operators, devices = drawn(seed, name)
    words, value = script(chance, operators, kind, 1), random_value(chance, operators.domain)
    ((expected,), used) = made(words, lambda source: operators.client(source=source).reports([value]))
    assert made(words, lambda source: devices.client(source=source).report(value)) == (expected, used)
    assert made(words, lambda source: operators.client(source=source).report(value)) == (expected, used)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", NAMES)
@given(SEEDS, st.integers(0, 12), st.booleans())
def test_batches(name, kind, seed, size, in_pieces):
    """Vectorised batches are made in pieces, whose rejected words are replaced after all others."""
    chance, operators, devices = drawn(seed, name)
    values = [random_value(chance, operators.domain) for _ in range(size)]
    words = script(chance, operators, kind, max(size, 1))
    with pytest.MonkeyPatch.context() as patch:
        if in_pieces:
            patch.setattr(response, "_WORDS_AT_ONCE", 1)
            patch.setattr(unary, "_ROWS_OF_WORDS", 1)
        expected = made(words, lambda source: operators.client(source=source).report_batch(values))
    assert made(words, lambda source: devices.client(source=source).report_batch(values)) == expected


def test_the_scripts_force_rejections_under_all_protocols_and_designs():
    """Otherwise the tests above would compare no replacement of a word. Bits are no integers, so none is rejected."""
    chance, rejecting = random.Random(5), set()
    for name in NAMES:
        for operators, devices in plans()[name]:
            words, value = script(chance, operators, "zeros", 1), random_value(chance, operators.domain)
            source = ScriptedSource(words)
            devices.client(source=source).report(value)
            if len(words) - source.remaining > words_needed(operators):
                rejecting |= {name, *(each.design.kind for each in operators.protocol.responses)}
    assert rejecting == {*NAMES, "singletons", "subsets", "cyclotomic", "projective"} - {"rappor", "oue"}


@pytest.mark.parametrize("name", NAMES)
@given(SEEDS)
def test_values_have_the_same_indices(name, seed):
    chance, operators, devices = drawn(seed, name)
    values = [random_value(chance, operators.domain) for _ in range(5)]
    found = operators.domain.indices(values).tolist()
    assert [list(row) if isinstance(row, tuple) else row for row in map(devices.domain.index, values)] == found


@given(SEEDS)
def test_odd_values_are_refused_by_both(seed):
    chance = random.Random(seed)
    operators, devices = chance.choice(plans()[chance.choice(NAMES)])
    odd = [None, True, -1, 10**30, 1.5, float("nan"), "", "no such label", b"x", [], {}, {"a": 1}, object()]
    for value in [*odd, any_text(chance, plans()["prefixes"][0][0].domain)]:
        outcomes = set()
        for plan in (operators, devices):
            try:
                index = plan.domain.index(value)
            except DomainError as error:
                index = str(error)
            outcomes.add(index)
        assert len(outcomes) == 1


@pytest.mark.parametrize("name", NAMES)
def test_plans_are_the_same_to_the_letter(name):
    for operators, devices in plans()[name]:
        assert devices.canonical == operators.canonical
        assert devices.protocol.report_layout == operators.protocol.report_layout
        assert devices.protocol.work == operators.protocol.work
        assert type(devices.protocol).__module__.startswith("sunzi.client.")
        assert not type(operators.protocol).__module__.startswith("sunzi.client.")
