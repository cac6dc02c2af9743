"""What a protocol says about a report to its device: what it costs, which values it names, and what it answers."""

import random
from functools import cache

import numpy as np
import pytest
from vectors import make_plans, make_record_plans, make_text_plans, random_value, random_words

import sunzi
from sunzi.client import Plan
from sunzi.client.reports import encode_report
from sunzi.numerics.randomness import ScriptedSource

NAMES = (*sunzi.catalogue(), "ordered", "number", "tables", "prefixes")
QUESTIONS = ("ordered", "number", "tables", "prefixes")


@cache
def plans():
    """The same plans as operators and as devices have them."""
    chance, found = random.Random(41), {name: [] for name in NAMES}
    fields = [sunzi.make_plan("pgr", 13, 1, order=3)]
    for plan in [*make_plans(chance), *make_record_plans(chance), *make_text_plans(chance), *fields]:
        found[plan.protocol.name].append((plan, Plan.from_json(plan.canonical)))
    return found


def work_of(response):
    """The work of a block response, by the table of docs/format.md, section 11."""
    design = response.design
    if design.kind == "subsets":
        return 2 + design.block_size + design.points
    return {"singletons": 2, "projective": 3, "cyclotomic": 4}[design.kind]


@pytest.mark.parametrize("name", NAMES)
def test_the_work_is_that_of_the_format(name):
    for operators, devices in plans()[name]:
        responses = operators.protocol.responses
        if not responses:
            expected = operators.domain.size
        else:
            draws_first = operators.protocol.first_word is not None or name == "number"
            expected = draws_first + max(map(work_of, responses))
        assert devices.protocol.work == operators.protocol.work == expected


@pytest.mark.parametrize("name", NAMES)
def test_no_report_draws_more_words_than_its_work(name):
    """Whichever response it chooses, with words that are never rejected; without subsets one draws as many."""
    for operators, devices in plans()[name]:
        used, chance = set(), random.Random(11)
        for first in [place << 54 for place in range(1 << 10)][:: 1 if len(operators.protocol.responses) > 1 else 512]:
            source = ScriptedSource([first + 1] + [(1 << 64) - 1] * (devices.protocol.work + 1))
            before = source.remaining
            devices.protocol.make_reports([devices.domain.index(random_value(chance, operators.domain))], source)
            used.add(before - source.remaining)
        assert max(used) <= devices.protocol.work
        if all(each.design.kind != "subsets" for each in operators.protocol.responses):
            assert max(used) == devices.protocol.work


@pytest.mark.parametrize("name", [name for name in NAMES if name not in QUESTIONS])
def test_a_report_names_the_values_that_it_supports(name):
    """As the operator counts them, one report at a time."""
    for operators, devices in plans()[name]:
        protocol, chance = operators.protocol, random.Random(7)
        for _ in range(5):
            source = ScriptedSource(random_words(chance, 4 * protocol.work + 64, [0, 1]))
            value = chance.randrange(operators.domain.size)
            ((selector, payload),) = devices.protocol.make_reports([value], source)
            report = encode_report(devices.protocol.report_layout, (selector, payload))
            tally = operators.tally([report])
            named = [devices.protocol.is_supported((selector, payload), each) for each in range(operators.domain.size)]
            assert named == supported(protocol, tally).tolist()


def supported(protocol, tally):
    """Which values one report supports, by the operator's counters."""
    if not protocol.responses:
        return np.asarray(protocol.support_counts(tally)) > 0
    (block,) = np.flatnonzero(tally.block_reports)
    response = protocol.responses[block]
    points = response.design.point_counts(tally.block(int(block)), response.points)
    return np.asarray(points)[protocol.points_of(int(block), np.arange(protocol.domain_size))] > 0


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_question_and_its_answer_make_the_report(name):
    """Drawn and answered in two steps, as a device keeps them, a report has the same words and bytes as in one."""
    for operators, devices in plans()[name]:
        chance = random.Random(3)
        for _ in range(20):
            words = random_words(chance, 2 * devices.protocol.work + 64, [0])
            index = devices.domain.index(random_value(chance, operators.domain))
            once, twice = ScriptedSource(words), ScriptedSource(words)
            question, cell = devices.protocol.draw_cell(index, twice)
            (report,) = devices.protocol.make_reports([index], once)
            assert (devices.protocol.answer(question, cell, twice), twice.remaining) == (report, once.remaining)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in QUESTIONS])
def test_other_protocols_have_no_question(name):
    _, devices = plans()[name][0]
    assert devices.protocol.draw_cell(0, ScriptedSource([])) is None
    with pytest.raises(TypeError, match="do not answer a question"):
        devices.protocol.answer(0, 0, ScriptedSource([]))
