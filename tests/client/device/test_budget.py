"""Budgets that end: what a device does with a value that it cannot pay, in each of three ways."""

from collections import defaultdict
from fractions import Fraction
from itertools import count

import pytest
from agreeing import THERE, agreed, bodies, epoch_of
from damage import directory_in_memory
from hypothesis import given
from hypothesis import strategies as st

import sunzi
from sunzi.client import Device
from sunzi.client.errors import BudgetError

PLAN = sunzi.make_plan("oue", 200, 1)
"""Wide enough that no two values have the same report by chance."""
OTHER = sunzi.make_plan("rappor", 200, 1)
HALF = sunzi.make_plan("oue", 200, Fraction(1, 2))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "device.db"


@pytest.fixture
def epochs():
    """A fresh epoch for every report."""
    return map(epoch_of, count(1))


def queued(device, epochs, values, plan=PLAN):
    """The outcomes and costs of one report after another, and the bytes of each, None if there is none."""
    found = []
    for value in values:
        before = len(device.waiting())
        result = device.queue(plan, "browser", value, next(epochs))
        made = device.waiting()[before:]
        assert len(made) == (result.identity is not None)
        found.append((result.outcome, result.cost, made[0].body if made else None))
    return found


def test_keep_repeats_the_latest_report_for_good(path, epochs):
    """An earlier value included: a device that went back to its report would go on revealing changes."""
    device = agreed(path, 2)
    first, second, *again = queued(device, epochs, [1, 2, 1, 2])
    assert [first[:2], second[:2]] == [("queued", 1)] * 2
    assert again == [("queued", 0, first[2]), ("queued", 0, second[2])]
    assert queued(device, epochs, [3, 1, 2, 3, "outside"]) == [("kept", 0, second[2])] * 5
    assert device.spent("browser") == 2


def test_keep_is_for_good_even_with_a_larger_budget(path, epochs):
    queued(agreed(path, 1), epochs, [1, 2])
    assert [outcome for outcome, *_ in queued(Device(path, 9, max_epsilon=1), epochs, [1, 3])] == ["kept"] * 2


def test_refuse_is_silent_for_good(path, epochs):
    device = agreed(path, 2, when_spent="refuse")
    assert [outcome for outcome, *_ in queued(device, epochs, [1, 2, 1])] == ["queued"] * 3
    assert queued(device, epochs, [3, 1, 2]) == [("silent", 0, None)] * 3
    assert device.spent("browser") == 2


def test_refuse_leaves_an_epoch_free(path, epochs):
    """Nothing was reported, so that nothing is written down."""
    device = agreed(path, 1, when_spent="refuse")
    queued(device, epochs, [1])
    assert [device.queue(PLAN, "browser", 2, epoch_of(99)).outcome for _ in range(2)] == ["silent"] * 2


def test_background_sets_its_own_report_aside(path, epochs):
    """With the first report; values that were paid are reported as they are, even after others were not."""
    device = agreed(path, 3, when_spent="background")
    first, second, third, again, outside = queued(device, epochs, [1, 2, 3, 1, "outside"])
    assert [each[:2] for each in (first, second, third)] == [("queued", 2), ("queued", 1), ("background", 0)]
    assert again == ("queued", 0, first[2])
    assert outside == ("queued", 0, third[2]), "a value outside the domain has the same report"
    assert len({first[2], second[2], third[2]}) == 3
    assert queued(device, epochs, [4, 5]) == [("background", 0, third[2])] * 2
    assert device.spent("browser") == 3


def test_background_needs_a_budget_for_two_reports(path, epochs):
    """The background report, and the first value."""
    device = agreed(path, 1, when_spent="background")
    with pytest.raises(BudgetError, match="its first report costs 2; raise the cap"):
        device.queue(PLAN, "browser", 1, THERE)
    assert (device.spent("browser"), device.waiting()) == (0, [])


def test_a_value_outside_comes_first(path, epochs):
    device = agreed(path, 2, when_spent="background")
    outside, inside, other = queued(device, epochs, [None, 1, 2])
    assert [each[:2] for each in (outside, inside, other)] == [("queued", 1), ("queued", 1), ("background", 0)]
    assert other[2] == outside[2]


@pytest.mark.parametrize("when_spent", ["keep", "background", "refuse"])
def test_a_budget_too_small_for_any_report_is_an_error(path, when_spent):
    device = agreed(path, Fraction(999, 1000), when_spent=when_spent)
    for value in (1, "outside"):
        with pytest.raises(BudgetError, match="'browser' may spend epsilon 999/1000 in its lifetime"):
            device.queue(PLAN, "browser", value, THERE)
    assert (device.spent("browser"), device.waiting()) == (0, [])
    assert Device(path, 2, max_epsilon=1).queue(PLAN, "browser", 1, THERE).outcome == "queued", "the epoch is free"


@pytest.mark.parametrize("when_spent", ["keep", "background", "refuse"])
def test_a_second_plan_that_the_rest_cannot_pay_is_silent(path, epochs, when_spent):
    """The attribute has reported, so that its budget was not too small from the start."""
    device = agreed(path, "5/2", when_spent=when_spent)
    queued(device, epochs, [1, 2])
    assert queued(device, epochs, [1, 2], OTHER) == [("silent", 0, None)] * 2
    assert device.spent("browser") == 2


def test_plans_of_one_attribute_share_its_budget_but_end_apart(path, epochs):
    device = agreed(path, "5/2")
    one = queued(device, epochs, [1])[0]
    other = queued(device, epochs, [1], OTHER)[0]
    assert queued(device, epochs, [2], OTHER) == [("kept", 0, other[2])]
    assert queued(device, epochs, [1]) == [("queued", 0, one[2])], "this plan has not met a value that it cannot pay"
    half = queued(device, epochs, [1], HALF)[0]
    assert half[:2] == ("queued", Fraction(1, 2))
    assert queued(device, epochs, [2]) == [("kept", 0, one[2])]
    assert queued(device, epochs, [2], HALF) == [("kept", 0, half[2])]
    assert device.spent("browser") == Fraction(5, 2)


def test_attributes_have_budgets_of_their_own(path, epochs):
    device = agreed(path, 1)
    queued(device, epochs, [1, 2])
    assert device.queue(PLAN, "language", 2, THERE).outcome == "queued"


def test_kept_and_background_reports_have_the_ids_of_their_epochs(path, epochs):
    """Nobody can tell them from others: a fresh id, tokens and groups as given."""
    plan = sunzi.make_plan("oue", 200, 1, groups={"country": ["DE"]})
    for when_spent in ("keep", "background"):
        device = agreed(path.with_name(when_spent), 2, when_spent=when_spent)
        for value in range(3):
            device.queue(plan, "browser", value, next(epochs), token="ab" * 32, groups={"country": "DE"})
        assert len({report.identity for report in device.waiting()}) == 3
        assert [(report.token, report.groups) for report in device.waiting()] == [("ab" * 32, {"country": "DE"})] * 3
        client = device.client(plan, "browser")
        assert [client.report_id(report.destination) for report in device.waiting()] == [
            report.identity for report in device.waiting()
        ]


def test_the_latest_report_is_repeated_after_it_was_sent(path, epochs):
    device = agreed(path, 1)
    ((_, _, body),) = queued(device, epochs, [1])
    device.flush(lambda report: None)
    assert queued(device, epochs, [2]) == [("kept", 0, body)]


def test_there_is_nothing_to_repeat_after_the_device_was_off(path, epochs):
    device = agreed(path, 1)
    queued(device, epochs, [1, 2])
    device.disable()
    assert device.enable()
    assert queued(device, epochs, [1, 2]) == [("silent", 0, None)] * 2


PLANS = (PLAN, HALF, OTHER)
CAPS = {"browser": Fraction(7, 2), "language": Fraction(2), "age": Fraction(3, 4)}
QUEUE = st.tuples(
    st.just("queue"),
    st.sampled_from(["keep", "background", "refuse"]),
    st.sampled_from(sorted(CAPS)),
    st.sampled_from(range(len(PLANS))),
    st.sampled_from([1, 2, 3, "outside"]),
    st.integers(1, 25),
)
OTHERS = st.sampled_from([("disable",), ("enable",), ("flush",)])
STEPS = st.lists(st.one_of(*[QUEUE] * 6, OTHERS), min_size=20, max_size=50)


class Model:
    """What a device does, in plain words and without any noise."""

    def __init__(self):
        self.is_on, self.generation = True, 0
        self.paid, self.latest = defaultdict(dict), {}
        self.ended, self.reported = set(), set()

    def spent(self, attribute):
        return sum(self.paid[attribute].values())

    def queue(self, mode, attribute, number, value, epoch):
        """The outcome, the cost, and what is reported: a value, "outside", or None for nothing."""
        if not self.is_on:
            return "off", 0, None
        if (attribute, epoch) in self.reported:
            return "repeated", 0, None
        outcome, new, said = self.decide(mode, attribute, number, value)
        epsilon = PLANS[number].epsilon
        self.paid[attribute] |= {(self.generation, number, each): epsilon for each in new}
        if said is not None:
            self.latest[attribute, number] = said
            self.reported.add((attribute, epoch))
        return outcome, len(new) * epsilon, said

    def decide(self, mode, attribute, number, value):
        paid, epsilon = self.paid[attribute], PLANS[number].epsilon
        left = CAPS[attribute] - self.spent(attribute)
        wanted = {"outside", value} if mode == "background" else {value}
        new = {each for each in wanted if (self.generation, number, each) not in paid}
        if (attribute, number) not in self.ended and len(new) * epsilon <= left:
            return "queued", new, value
        if not paid:
            raise BudgetError
        if mode == "background":
            new &= {"outside"}
            return ("background", new, "outside") if len(new) * epsilon <= left else ("silent", set(), None)
        self.ended.add((attribute, number))
        said = self.latest.get((attribute, number)) if mode == "keep" else None
        return "silent" if said is None else "kept", set(), said

    def disable(self):
        self.is_on = False
        self.latest.clear()

    def enable(self):
        self.generation += not self.is_on
        self.is_on = True


@given(STEPS)
def test_random_sequences_follow_the_model_and_no_cap_is_exceeded(steps):
    """In any order of values, plans, modes, epochs and consent; equal statements have equal bytes."""
    with directory_in_memory() as directory:
        path, model, said = directory / "device.db", Model(), {}
        agreed(path, 1)
        for step, *arguments in steps:
            mode = arguments[0] if arguments else "keep"
            device = Device(path, 1, max_epsilon=1, caps=CAPS, when_spent=mode)
            if step == "flush":
                device.flush(lambda report: None)
            elif step != "queue":
                getattr(device, step)()
                getattr(model, step)()
            else:
                _, attribute, number, value, epoch = arguments
                call = (PLANS[number], attribute, value, epoch_of(epoch))
                try:
                    outcome, cost, statement = model.queue(*arguments)
                except BudgetError:
                    with pytest.raises(BudgetError):
                        device.queue(*call)
                    continue
                before = len(device.waiting())
                found = device.queue(*call)
                assert (found.outcome, found.cost) == (outcome, cost)
                made = bodies(device)[before:]
                assert len(made) == (statement is not None)
                if made:
                    key = model.generation, attribute, number, statement
                    assert said.setdefault(key, made[0]) == made[0]
            for attribute, cap in CAPS.items():
                assert device.spent(attribute) == model.spent(attribute) <= cap
        assert len(set(said.values())) == len(said)
