"""Which protocol for a domain, ε and a number of users: figures of all protocols, one choice, and the reason.

No protocol is best on every axis, so the objective says what to favour. Each objective first keeps the protocols whose
mean error is near the smallest, and chooses among these:

=========  =================================  ========================================================================
objective  mean error at most                 then
=========  =================================  ========================================================================
error      1.01 times the smallest            the shortest reports
bits       1.25 times the smallest            the shortest reports
attack     2 times the smallest               attackability within 5 % of the least; of these the shortest reports
balanced   1.05 times the smallest            attackability within 25 % of the least; of these the shortest reports
=========  =================================  ========================================================================

Ties go to less work. Four times the users would make up for twice the error.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from html import escape
from math import inf
from typing import Any, Literal, get_args

from sunzi._typing import Progress
from sunzi.batch import check_delta
from sunzi.client.epsilon import Epsilon, parse_epsilon
from sunzi.client.errors import ParameterError, SunziError
from sunzi.display.markup import for_notebook, plain_table
from sunzi.domains.labels import Domain
from sunzi.errors import PlanWarning
from sunzi.plan import Plan, make_plan
from sunzi.planning.axes import Axes, check_reference, evaluate
from sunzi.planning.axes_table import AxesTable
from sunzi.planning.moduli_candidates import KINDS, ModuliCandidate, reference_error
from sunzi.planning.moduli_choice import MOST_ERROR_RATIO, pareto_front
from sunzi.planning.populations import ReferenceHistogram
from sunzi.protocols.base import check_users
from sunzi.protocols.moduli import residues_pay
from sunzi.protocols.registry import catalogue

Objective = Literal["balanced", "error", "bits", "attack"]
OBJECTIVES: tuple[Objective, ...] = get_args(Objective)

_ERROR_ROOM: dict[Objective, float] = {"error": 1.01, "bits": 1.25, "attack": 2.0, "balanced": 1.05}
_ATTACK_ROOM: dict[Objective, float] = {"error": inf, "bits": inf, "attack": 1.05, "balanced": 1.25}
# Longer reports, 16 KiB from every client, are chosen only if the protocol is named.
_LONGEST_REPORT = 1 << 17
# The figures of a modular protocol need a solve over the whole domain, which takes minutes beyond this size.
_LARGEST_SOLVED = 1 << 21
SIZED = ("ss", "ss-compact", "pgr")
"""The protocols that use larger blocks to meet a limit on attackability."""
MINIMAL = ("grr", "ss-compact")
"""The protocols of the minimal profile, which small clients have (conformance/README.md)."""


@dataclass(frozen=True)
class Option:
    """One row of the table: a protocol with its plan and figures, or the reason why it has none."""

    protocol: str
    plan: Plan | None
    axes: Axes | None
    excluded: str | None
    """Why it cannot be chosen; None if it can."""
    note: str = ""
    """What to know before choosing it, if anything."""


@dataclass(frozen=True, repr=False)
class Recommendation:
    """The figures of all protocols, and the protocol to use.

    >>> found = recommend(16, 1, users=1000, protocols=["grr", "oue"])
    >>> found.protocol, [option.protocol for option in found.options]
    ('oue', ['grr', 'oue'])
    """

    objective: Objective
    options: tuple[Option, ...]
    protocol: str
    reason: str

    def with_groups(self, groups: Mapping[str, Iterable[str]]) -> Recommendation:
        """The same recommendation, whose plans declare these public groups (:meth:`Plan.with_groups`)."""
        return self._with_plans(lambda plan: plan.with_groups(groups))

    def with_lifetime(self, lifetime: Epsilon | None) -> Recommendation:
        """The same recommendation, whose plans state this lifetime budget (:meth:`Plan.with_lifetime`)."""
        return self._with_plans(lambda plan: plan.with_lifetime(lifetime))

    def _with_plans(self, change: Callable[[Plan], Plan]) -> Recommendation:
        options = [
            option if option.plan is None else replace(option, plan=change(option.plan)) for option in self.options
        ]
        return replace(self, options=tuple(options))

    @property
    def chosen(self) -> Option:
        """The row of the recommended protocol."""
        return next(option for option in self.options if option.protocol == self.protocol)

    @property
    def plan(self) -> Plan:
        """The recommended plan."""
        plan = self.chosen.plan
        assert plan is not None, "only options with a plan are chosen"
        return plan

    @property
    def axes(self) -> Axes:
        """The figures of the recommended plan."""
        found = self.chosen.axes
        assert found is not None, "only options with axes are chosen"
        return found

    @property
    def table(self) -> AxesTable:
        """The columns for these figures."""
        return AxesTable.of(option.axes for option in self.options)

    def table_rows(self) -> tuple[list[str], list[list[str]]]:
        """The header and all rows, with a last column of reasons and notes."""
        table = self.table
        rows = [[*table.cells(each.protocol, each.axes), each.excluded or each.note] for each in self.options]
        return [*table.header, ""], rows

    def __repr__(self) -> str:
        """The choice and its reason."""
        return f"Recommendation({self.protocol}: {self.reason})"

    def _repr_html_(self) -> str:
        """The table of all protocols and the reason for the choice, for notebooks."""
        table = plain_table(*self.table_rows(), chosen=[self.options.index(self.chosen)])
        return for_notebook(f'<p>{escape(self.reason)}</p>\n<div class="scroll">\n{table}\n</div>')


def recommend(
    domain: int | Iterable[str] | Domain,
    epsilon: Epsilon,
    users: int,
    objective: Objective = "balanced",
    *,
    max_bits: float | None = None,
    max_attack: float | None = None,
    protocols: Sequence[str] | None = None,
    profile: Literal["minimal"] | None = None,
    search: bool = False,
    histogram: ReferenceHistogram = "flat",
    delta: float | None = None,
    progress: Progress | None = None,
) -> Recommendation:
    """Compare protocols for one setting and choose one; raises ParameterError if none keeps the limits.

    Parameters
    ----------
    domain, epsilon: as for :func:`sunzi.make_plan`.
    users: how many users will report.
    objective: what to favour among protocols whose error is near the smallest: ``"balanced"``, ``"error"``, ``"bits"``
        or ``"attack"``.
    max_bits: limit on the mean bits per report.
    max_attack: limit on the attackability.
    protocols: the names to compare; by default all of the catalogue.
    profile: "minimal" for plans that small clients understand: grr or ss-compact, with labels in the plan.
    search: search for the best moduli of modular protocols instead of taking a quick spread. A limit that the quick
        spread exceeds starts the search in any case.
    histogram: compare errors of equally frequent values, ``"flat"``, or of ``"skewed"`` ones, which takes up to a
        minute on tens of thousands of values.
    delta: also compute what a batch of all reports reveals, with this δ.
    progress: called with the fraction done.

    >>> recommend(16, 1, users=1000, protocols=["grr", "oue"]).protocol
    'oue'
    """
    terms = Domain.of(domain)
    budget = parse_epsilon(epsilon)
    check_users(users)
    _check_wishes(objective, max_bits, max_attack)
    check_reference(histogram)
    if delta is not None:
        check_delta(delta)
    every = catalogue() if profile is None else MINIMAL
    names = tuple(every if protocols is None else dict.fromkeys(protocols))
    _check_profile(profile, terms, names)
    options = []
    for index, name in enumerate(names):
        part = _part(progress, index, len(names))
        limits = max_bits or inf, max_attack or inf
        is_named = protocols is not None
        wishes = _Wishes(terms, budget, users, objective, *limits, search, is_named, histogram, delta, part)
        options.append(_option(name, wishes))
        part(1.0)
    return choose_among(options, objective)


def _part(progress: Progress | None, index: int, parts: int) -> Progress:
    """Progress of one of several equal parts."""

    def update(done: float) -> None:
        if progress is not None:
            progress((index + done) / parts)

    return update


@dataclass(frozen=True)
class _Wishes:
    domain: Domain
    epsilon: Fraction
    users: int
    objective: Objective
    max_bits: float
    max_attack: float
    search: bool
    is_named: bool
    """Whether the protocols were named, so that impractical ones are not left out."""
    histogram: ReferenceHistogram
    delta: float | None
    progress: Progress

    def complaint(self, found: Axes) -> str | None:
        """Which limit these figures exceed, if any."""
        if found.bits > self.max_bits:
            return f"{found.bits:g} bits per report exceed {self.max_bits:g}"
        if found.attackability > self.max_attack:
            return f"an attackability of {found.attackability:.3g} exceeds {self.max_attack:g}"
        return None


def _check_wishes(objective: str, max_bits: float | None, max_attack: float | None) -> None:
    if objective not in OBJECTIVES:
        raise ParameterError(f"objective must be one of {', '.join(OBJECTIVES)}; got {objective!r}")
    if max_bits is not None and not max_bits >= 1:
        raise ParameterError(f"max_bits must be at least 1, got {max_bits}")
    if max_attack is not None and not 0 < max_attack <= 1:
        raise ParameterError(f"max_attack must lie between 0 and 1, got {max_attack}")


def _check_profile(profile: str | None, domain: Domain, names: Sequence[str]) -> None:
    """Raise ParameterError unless plans of these protocols are of the profile."""
    if profile is None:
        return
    if profile != "minimal":
        raise ParameterError(f"profile must be 'minimal' or None, got {profile!r}")
    outside = next((name for name in names if name not in MINIMAL), None)
    if outside is not None:
        raise ParameterError(f"the minimal profile has the protocols {' and '.join(MINIMAL)}, got {outside}")
    if not set(domain.to_json()) <= {"size", "labels", "other"}:
        raise ParameterError(f"the minimal profile needs a size, or labels in the plan, got {domain!r}")


def _option(name: str, wishes: _Wishes) -> Option:
    """The row of one protocol, with a search for moduli where it is requested or needed."""
    if name in KINDS and wishes.domain.size > _LARGEST_SOLVED and not wishes.is_named:
        reason = f"its figures take minutes above {_LARGEST_SOLVED:,} values; name it to include it"
        return Option(name, None, None, reason)
    try:
        option = _weighed(make_plan(name, wishes.domain, wishes.epsilon), wishes)
        fails = option.axes is not None and wishes.complaint(option.axes) is not None
        if name in KINDS and (wishes.search or fails):
            option = _searched(option, wishes)
        elif name in SIZED and option.axes is not None and option.axes.attackability > wishes.max_attack:
            option = _enlarged(option, wishes)
    except SunziError as error:
        if wishes.is_named:
            raise
        return Option(name, None, None, str(error))
    return option


def _weighed(plan: Plan, wishes: _Wishes) -> Option:
    found = evaluate(plan, wishes.users, wishes.histogram, delta=wishes.delta)
    complaint = wishes.complaint(found)
    if complaint is None and not wishes.is_named and found.max_bits > _LONGEST_REPORT:
        complaint = f"reports of {found.max_bits:,} bits are impractical; name it to choose it"
    return Option(found.protocol, plan, found, complaint, residue_note(plan))


def residue_note(plan: Plan) -> str:
    """Where residues do not pay, how the error compares and what to use instead; elsewhere nothing."""
    size, epsilon = plan.domain.size, plan.epsilon
    if plan.protocol.name not in KINDS or residues_pay(size, epsilon):
        return ""
    ratio = plan.expected_mse(1) / reference_error(size, epsilon)
    return (
        f"residues do not pay below 1.5·e^ε values: the mean squared error is {ratio:.3g} times that of ss. To reveal "
        "less, set max_attack: ss, ss-compact and pgr then take larger blocks"
    )


def _enlarged(default: Option, wishes: _Wishes) -> Option:
    """The least error within the limit on attackability, by larger blocks."""
    try:
        plan = make_plan(default.protocol, wishes.domain, wishes.epsilon, max_attack=wishes.max_attack)
    except ParameterError as error:
        return replace(default, excluded=str(error))
    return _weighed(plan, wishes)


def _searched(quick: Option, wishes: _Wishes) -> Option:
    """The best moduli of the Pareto search by the same objective, unless the quick spread is as good."""
    kind: Any = quick.protocol
    front = pareto_front(
        wishes.domain.size,
        wishes.epsilon,
        kind,
        max_bits=None if wishes.max_bits == inf else wishes.max_bits,
        max_attack=None if wishes.max_attack == inf else wishes.max_attack,
        effort="normal" if wishes.search else "quick",
        progress=wishes.progress,
    )
    most = MOST_ERROR_RATIO * reference_error(wishes.domain.size, wishes.epsilon)
    front = [candidate for candidate in front if candidate.error <= most]
    if not front:
        return quick
    found = _best_of_front(front, quick.protocol, wishes)
    usable = [option for option in (found, quick) if option.excluded is None]
    if not usable:
        return found
    return usable[_best([_weight_of(option) for option in usable], wishes.objective)]


def _best_of_front(front: Sequence[ModuliCandidate], name: str, wishes: _Wishes) -> Option:
    weights = [_Weight(each.error**0.5, each.bits, each.attackability, each.decode_work) for each in front]
    moduli = front[_best(weights, wishes.objective)].moduli
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PlanWarning)  # the table shows the error
        plan = make_plan(name, wishes.domain, wishes.epsilon, moduli=moduli)
    return _weighed(plan, wishes)


@dataclass(frozen=True)
class _Weight:
    """The figures that an objective compares."""

    error: float
    bits: float
    attackability: float
    work: float


def _weight_of(option: Option) -> _Weight:
    found = option.axes
    assert found is not None, "only options with axes are weighed"
    work = inf if found.work is None else found.work
    return _Weight(found.mean_error, found.bits, found.attackability, work)


def _best(weights: Sequence[_Weight], objective: Objective) -> int:
    """The index that the objective selects."""
    smallest = min(weight.error for weight in weights)
    near = [weight for weight in weights if weight.error <= _ERROR_ROOM[objective] * smallest]
    least = min(weight.attackability for weight in near)
    near = [weight for weight in near if weight.attackability <= _ATTACK_ROOM[objective] * least]
    return weights.index(min(near, key=lambda weight: (weight.bits, weight.work, weight.error)))


def choose_among(options: Sequence[Option], objective: Objective) -> Recommendation:
    """The recommendation for these rows; raises ParameterError if none can be chosen."""
    usable = [option for option in options if option.axes is not None and option.excluded is None]
    if not usable:
        raise ParameterError(_nothing_fits(options))
    weights = [_weight_of(option) for option in usable]
    index = _best(weights, objective)
    name = usable[index].protocol
    reason = f"{name} is the only candidate."
    if len(options) > 1:
        reason = _reason(name, weights[index], weights, objective)
    return Recommendation(objective, tuple(options), name, reason)


def _nothing_fits(options: Sequence[Option]) -> str:
    found = [option.axes for option in options if option.axes is not None]
    if not found:
        return "no protocol fits: " + "; ".join(f"{option.protocol}: {option.excluded}" for option in options)
    if len(options) == 1:
        return f"{options[0].protocol} does not meet the limits: {options[0].excluded}"
    shortest = min(found, key=lambda each: each.bits)
    safest = min(found, key=lambda each: each.attackability)
    return (
        f"no protocol meets these limits; the shortest reports take {shortest.bits:.4g} bits ({shortest.protocol}), "
        f"the least attackability is {safest.attackability:.3g} ({safest.protocol})"
    )


def _reason(name: str, chosen: _Weight, weights: Sequence[_Weight], objective: Objective) -> str:
    """One sentence about the figures in the table."""
    if len(weights) == 1:
        return f"{name} is the only candidate that meets the limits."
    excess = chosen.error / min(weight.error for weight in weights) - 1
    own = f" (its own is {100 * excess:.2g} % above that)" if excess >= 0.001 else ""
    near = f"an error at most {100 * _ERROR_ROOM[objective] - 100:.0f} % above the smallest{own}"
    if objective in ("attack", "balanced"):
        room = 100 * _ATTACK_ROOM[objective] - 100
        near += f" and, among these, an attackability ({chosen.attackability:.3g}) at most {room:.0f} % above the least"
    return f"{name} has the shortest reports ({chosen.bits:.4g} bits) of the protocols with {near}."


def at_users(recommendation: Recommendation, users: int) -> Recommendation:
    """The same plans with another number of users; the choice stays, because all errors scale alike."""
    histogram, batch = recommendation.axes.histogram, recommendation.axes.batch
    delta = None if batch is None else batch.delta
    options = tuple(
        option if option.plan is None else replace(option, axes=evaluate(option.plan, users, histogram, delta=delta))
        for option in recommendation.options
    )
    return replace(recommendation, options=options)
