"""The contract suite: what every design and every protocol must satisfy, including your own.

Each check raises AssertionError with what is wrong. ``check_protocol`` and ``check_design`` run them all::

    from sunzi.testing import check_protocol
    check_protocol("my-protocol", domain_size=20, epsilon=1)

Randomised checks use fixed seeds and a false-alarm rate of at most 1e-6.

Privacy is checked by sampling. This finds gross violations, such as a protocol that spends three times the ε it claims,
but proves nothing: small excesses, rare reports and values that were not sampled go unnoticed. Protocols built on
:class:`sunzi.designs.BlockResponse` are proven by its integer thresholds; any other protocol needs its own proof.
"""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from itertools import permutations
from math import ceil, exp, log
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sunzi import wire
from sunzi._typing import Integers
from sunzi.analysis.statistics import lower_limits, upper_limits
from sunzi.client.errors import ReportError, SunziError
from sunzi.designs.base import Design
from sunzi.errors import TallyError
from sunzi.numerics.randomness import ReproducibleSource, ScriptedSource
from sunzi.plan import Plan, make_plan
from sunzi.tally import Tally

__all__ = ["ReproducibleSource", "ScriptedSource", "check_design", "check_protocol"]

FALSE_ALARM = 1e-6
_USERS = 4000
_RUNS = 60
_PRIVACY_REPORTS = 50_000
_FREQUENT = 100
"""Expected events per run from which on sixty runs are enough to judge a variance."""


def check_design(design: Design) -> None:
    """Run every check of a design.

    Parameters
    ----------
    design: a small design, since all its messages are enumerated.

    >>> from sunzi.designs import Singletons
    >>> check_design(Singletons(5))
    """
    for check in (check_two_design, check_responses, check_point_counts, check_design_parameters):
        check(design)


def _incidence(design: Design) -> NDArray[np.bool_]:
    """Row y: the points of message y's block."""
    messages = design.every_message()
    columns = [design.contains(messages, np.full(len(messages), point)) for point in range(design.points)]
    return np.column_stack(columns)


def _payloads(design: Design, messages: Integers) -> list[int]:
    return wire.payload_integers(design.encode(messages))


def check_two_design(design: Design) -> None:
    """All blocks have the stated size; all points, and all pairs of points, lie in equally many blocks."""
    incidence = _incidence(design).astype(np.int64)
    assert np.all(incidence.sum(axis=1) == design.block_size), "a block does not have the stated size"
    pairs = incidence.T @ incidence
    expected = design.message_count * design.block_size // design.points
    assert np.all(np.diagonal(pairs) == expected), "points lie in differently many blocks"
    others = pairs[~np.eye(design.points, dtype=np.bool_)]
    assert np.all(others == others[0]), "pairs of points lie in differently many blocks"


def check_responses(design: Design) -> None:
    """Over all variates, a truthful response is uniform over the blocks that contain the value, any other over the
    blocks that do not.
    """
    grids = np.meshgrid(*(np.arange(bound, dtype=np.uint64) for bound in design.draw_bounds), indexing="ij")
    variates = np.column_stack([grid.reshape(-1) for grid in grids])
    rows = len(variates)
    incidence = _incidence(design)
    numbers = {payload: number for number, payload in enumerate(_payloads(design, design.every_message()))}
    for value in range(design.points):
        for truth in (True, False):
            messages = design.respond(np.full(rows, value), np.full(rows, truth), variates)
            drawn = [numbers[payload] for payload in _payloads(design, messages)]
            counts = np.bincount(drawn, minlength=design.message_count)
            allowed = incidence[:, value] == truth
            assert not counts[~allowed].any(), f"value {value}, truth {truth}: a block of the wrong kind"
            assert len(set(counts[allowed].tolist())) == 1, (
                f"value {value}, truth {truth}: blocks are not equally likely"
            )


def check_point_counts(design: Design) -> None:
    """Counting, point counts, block sums and their transpose agree with the incidence matrix."""
    generator = np.random.default_rng(1)
    incidence = _incidence(design)
    drawn = generator.integers(0, design.message_count, 5 * design.message_count)
    messages = design.every_message()[drawn]
    counters = design.count(messages)
    assert design.count_payloads(design.encode(messages)) == counters, "payloads count differently from messages"
    for limit in (design.points, max(2, design.points - 1)):
        expected = incidence[drawn, :limit].sum(axis=0)
        assert np.array_equal(design.point_counts(counters, limit), expected), "point counts are wrong"
        assert design.missing_messages(limit) == np.count_nonzero(~incidence[:, :limit].any(axis=1))
        if design.counts_blocks:
            values, weights = generator.random(limit), generator.random(design.message_count)
            assert np.allclose(design.block_sums(values), incidence[:, :limit] @ values), "block sums are wrong"
            assert np.allclose(design.spread(weights, limit), weights @ incidence[:, :limit]), "spread is wrong"


def check_design_parameters(design: Design) -> None:
    """The parameters describe the design completely."""
    assert type(design).from_parameters(design.parameters()) == design, "parameters do not restore the design"
    payloads = _payloads(design, design.every_message())
    assert max(payloads).bit_length() <= design.payload_bits, "payload_bits cannot hold every payload"
    assert len(set(payloads)) == design.message_count, "two messages have the same payload"
    assert np.array_equal(design.decode(design.encode(design.every_message())), design.every_message())


def check_protocol(name: str, domain_size: int = 20, epsilon: float | str | Fraction = 1, **options: Any) -> None:
    """Run every check of a protocol at one setting.

    Parameters
    ----------
    name: a name from :func:`sunzi.catalogue`; register your own with :func:`sunzi.protocols.register`.
    domain_size, epsilon, options: as for :func:`sunzi.make_plan`.

    >>> check_protocol("grr", domain_size=5, epsilon=2)
    """
    plan = make_plan(name, domain_size, epsilon, **options)
    checks: tuple[Callable[[Plan], None], ...] = (
        check_plan_round_trip,
        check_words_decide,
        check_report_bytes,
        check_refusals,
        check_merge,
        check_privacy,
        check_estimates,
        check_figures,
    )
    for check in checks:
        check(plan)


def _values(plan: Plan, users: int = _USERS) -> Integers:
    """A skewed population: a third of the users hold value 0, the others are spread uniformly."""
    generator = np.random.default_rng(7)
    spread = generator.integers(0, plan.domain.size, users)
    return np.where(generator.random(users) < 1 / 3, 0, spread)


def check_plan_round_trip(plan: Plan) -> None:
    """A plan's JSON restores the plan, with the same fingerprint."""
    restored = Plan.from_json(plan.canonical)
    assert restored == plan, "the plan's JSON restores another plan"
    assert restored.protocol.parameters() == plan.protocol.parameters(), "parameters changed in the round trip"


def check_words_decide(plan: Plan) -> None:
    """Reports depend on the value and on the random words, and on nothing else; a batch of one is a single report."""
    values = _values(plan, 8)
    first, second = (plan.client(seed=5).report_batch(values) for _ in range(2))
    assert first == second, "the same words gave different reports"
    assert _words_matter(plan), "other words gave the same reports"
    one, many = plan.client(seed=5), plan.client(seed=5)
    assert one.report(int(values[0])) == many.reports(values[:1])[0], "a batch of one is not a report"


def _words_matter(plan: Plan) -> bool:
    """Whether different words ever give different reports.

    Under ε-LDP a report differs from the most likely one of its value with probability about 1/(e^ε+1). So 14·(e^ε+1)
    reports all coincide with probability e^−14 < 1e-6; usually far fewer are enough.
    """
    enough = ceil(-log(FALSE_ALARM) * (exp(plan.epsilon) + 1))
    count = 8
    while True:
        values = _values(plan, min(count, enough))
        if plan.client(seed=5).report_batch(values) != plan.client(seed=6).report_batch(values):
            return True
        if count >= enough:
            return False
        count *= 8


def check_privacy(plan: Plan) -> None:
    """In samples, no set of reports is more than e^ε times as likely under one value as under another.

    Also tries the protocol with three values: its reports are few, so sampling finds the most revealing set.
    """
    _check_odds(plan)
    try:
        small = make_plan(plan.protocol.name, 3, plan.epsilon)
    except SunziError:  # not every protocol works for three values
        return
    if small != plan:
        _check_odds(small)


def _check_odds(plan: Plan) -> None:
    """One half of the reports chooses the set, the other half tests it, with exact limits for both probabilities."""
    values = sorted({0, 1, plan.domain.size - 1})
    source = ReproducibleSource(13)
    chosen, judged = ({value: _count_reports(plan, value, source) for value in values} for _ in range(2))
    pairs = list(permutations(values, 2))
    alarm = FALSE_ALARM / (4 * len(pairs))  # two limits per pair, in each of two plans
    odds = exp(plan.epsilon)
    for value, other in pairs:
        telling = {report for report, count in chosen[value].items() if count > odds**0.5 * chosen[other][report]}
        hits, rivals = (sum(judged[each][report] for report in telling) for each in (value, other))
        likely = float(lower_limits(hits, _PRIVACY_REPORTS, alarm))
        unlikely = float(upper_limits(rivals, _PRIVACY_REPORTS, alarm))
        assert likely <= odds * unlikely, (
            f"some reports have probability {likely:.3g} or more from value {value}, and {unlikely:.3g} or less from "
            f"value {other}: more than epsilon {plan.epsilon} allows"
        )


def _count_reports(plan: Plan, value: int, source: ReproducibleSource) -> Counter[bytes]:
    messages = plan.protocol.randomize(np.full(_PRIVACY_REPORTS, value), source)
    return Counter(wire.encode_each(plan.protocol.report_layout, plan.protocol.encode(messages)))


def check_report_bytes(plan: Plan) -> None:
    """Single reports, lists, batches and streams of batches give the same counts, within the stated bits."""
    values = _values(plan, 300)
    layout = plan.protocol.report_layout
    each = plan.client(seed=11).reports(values)
    batch = plan.client(seed=11).report_batch(values)
    assert max(len(report) for report in each) <= (plan.max_report_bits + 7) // 8, "a report is longer than stated"
    assert plan.tally(each) == plan.tally(batch), "a batch counts differently from its reports"
    assert plan.tally(io.BytesIO(batch + batch)) == plan.tally([batch, batch]), "a stream counts differently"
    encoded = wire.decode_reports(layout, each)
    again = plan.protocol.encode(plan.protocol.decode(encoded))
    assert wire.encode_each(layout, again) == each, "decoding and encoding changes the bytes"
    assert plan.tally(each).reports == len(each)


def check_refusals(plan: Plan) -> None:
    """Truncated, extended and foreign bytes are refused, and so is another plan's tally."""
    values = _values(plan, 20)
    report, batch = plan.client(seed=1).report(int(values[0])), plan.client(seed=1).report_batch(values)
    foreign = bytearray(batch)
    foreign[8] ^= 1
    damaged = bytearray(batch)
    damaged[-1] ^= 1
    for data in (report + b"\0", report[:-1], batch[:-1], batch + b"\0", bytes(foreign), bytes(damaged)):
        _refused(partial(plan.tally, data), ReportError)
    tally = plan.tally(batch)
    other = Tally(bytes(32), tally.layout, tally.reports, tally.counters)
    _refused(lambda: tally + other, TallyError)
    _refused(lambda: plan.estimate(other), TallyError)


def _refused(action: Callable[[], object], expected: type[Exception]) -> None:
    try:
        action()
    except expected:
        return
    raise AssertionError(f"should have been refused with {expected.__name__}")


def check_merge(plan: Plan) -> None:
    """Tallies add up: in any order, in any grouping, and through their bytes."""
    values = _values(plan, 90)
    parts = [plan.tally(plan.client(seed=index).report_batch(values[index::3])) for index in range(3)]
    first, second, third = parts
    assert first + second == second + first
    assert (first + second) + third == first + (second + third)
    assert sum(parts) == first + second + third
    assert plan.empty_tally() + first == first
    assert Tally.from_bytes(first.to_bytes()) == first


def check_estimates(plan: Plan) -> None:
    """Over many runs every item's mean error is within its bound, and the errors are as large as stated."""
    values = _values(plan)
    truth = np.bincount(values, minlength=plan.domain.size) / values.size
    runs = [plan.estimate(plan.simulate(values, seed=seed)) for seed in range(_RUNS)]
    runs.append(plan.estimate(plan.tally(plan.client(seed=99).report_batch(values))))
    errors = np.array([run.frequencies - truth for run in runs])
    stated = np.sqrt(np.mean([run.standard_errors() ** 2 for run in runs], axis=0))
    alarm = FALSE_ALARM / (4 * plan.domain.size)
    # Bernstein's bound covers errors caused by few, rare reports. Stated errors are estimates too: allow a tenth.
    chances = plan.protocol.support_probabilities()
    single_report = len(chances) / (min(true - false for true, false in chances) * values.size)
    rare = 2 / 3 * log(2 / alarm) * single_report / len(runs)
    quantile = NormalDist().inv_cdf(1 - alarm)
    bound = 1.1 * quantile * stated / np.sqrt(len(runs)) + rare
    assert np.all(np.abs(errors.mean(axis=0)) <= bound), "estimates are biased"
    if min(min(1 - true, false) for true, false in chances) * values.size >= _FREQUENT:
        total = np.mean(errors**2) / np.mean(stated**2)
        spread = quantile * np.sqrt(2 / (len(runs) * max(plan.domain.size - 1, 1))) * 2
        assert abs(total - 1) <= spread + 0.1, f"errors are {total:.2f} times what is stated"
    low, high = runs[0].interval(0.95)
    assert np.all(low <= high), "an interval is upside down"
    assert np.isclose(runs[0].postprocess("simplex").frequencies.sum(), 1)


def check_figures(plan: Plan) -> None:
    """Planning figures are in range and consistent with one another."""
    assert 0 < plan.report_bits <= plan.max_report_bits
    assert 1 / plan.domain.size <= plan.attackability * (1 + 1e-12) <= 1 + 1e-9
    assert 0 < plan.expected_mse(1000) < plan.expected_mse(100)
    uniform = np.full(plan.domain.size, 1 / plan.domain.size)
    assert plan.expected_mse(1000, uniform) <= plan.worst_mse(1000) * (1 + 1e-9)
    assert all(false < true for true, false in plan.protocol.support_probabilities())
