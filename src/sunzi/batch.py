"""The guarantee of a batch: what someone can learn about one person who sees only a published tally, or shuffled
reports (docs/batch.md, docs/mathematics.md §17).
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from math import ceil, exp
from typing import Any, Literal, get_args

from sunzi.errors import ParameterError, PlanWarning, PrivacyError
from sunzi.formatting import percent
from sunzi.numerics.bit_sums import BitSums
from sunzi.numerics.blanket import LEAST_DELTA, Blanket
from sunzi.numerics.checks import real_number, shown, whole_number
from sunzi.protocols.base import Protocol

Reader = Literal["reports", "tally"]
READERS: dict[Reader, str] = {
    "reports": "sees all reports of the batch in random order, without ids, times or addresses",
    "tally": "sees the tally and estimates of the batch, and no report",
}

MOST_REPORTS = 10**12
_MOST_EPOCHS = 10_000
# Batch sizes are rounded down to this many steps per factor of two before their losses are added up.
_SIZES_PER_DOUBLING = 32
_LEAST_STEPS, _MOST_STEPS = 32, 256
_SIZE_PRECISION = 1.003


@dataclass(frozen=True)
class BatchGuarantee:
    """(ε, δ)-differential privacy of published batches, with everything that it depends on.

    It holds if one person's value is replaced by another, for every possible data of all others, as long as at least
    ``honest_reports`` clients followed the plan; the others may work for the reader.
    """

    epsilon: float
    """The central ε, proven."""
    attack: float | None
    """An ε that an attack reaches: no smaller one can be claimed. None if no attack is known."""
    delta: float
    local_epsilon: Fraction
    """The ε of one report, which holds against everybody and needs no trust."""
    reports: int
    """The size of the smallest batch. Batches of fewer reports must not be published."""
    honest: float
    reader: Reader
    epochs: int = 1
    """Batches with fresh noise that contain the same person."""
    cohort: int | None = None
    """The people who are in exactly the same batches, if devices repeat memoised reports."""

    @property
    def honest_reports(self) -> int:
        """n: how many reports of the smallest batch, or of the cohort, follow the plan, the person's own included."""
        return honest_reports(self.cohort or self.reports, self.honest)

    def in_words(self) -> str:
        """What this means, in two sentences."""
        seen = "the published counts" if self.reader == "tally" else "all reports, shuffled,"
        several = f" of {self.epochs:,} batches" if self.epochs > 1 else ""
        odds = f"by a factor of at most {_factor(self.epsilon)}"
        chance = f"except with a probability of {self.delta:g}"
        return (
            f"Someone who sees only {seen}{several} can change their odds about one person's value {odds}, {chance}. "
            f"Someone who sees a single report as it arrives, such as the collector's operator, can change them by "
            f"{_factor(float(self.local_epsilon))}: the batch does not protect against them."
        )

    def facts(self) -> list[tuple[str, str]]:
        """The guarantee and all its conditions, as names and texts."""
        batches = f"at least {self.reports:,} reports in each batch; do not publish smaller ones"
        attack = "unknown" if self.attack is None else f"{self.attack:.4g}: no smaller epsilon can be claimed"
        rows = [
            ("central epsilon", f"{self.epsilon:.4g}, with delta = {self.delta:g} (proven)"),
            ("attack", attack),
            ("local epsilon", f"{float(self.local_epsilon):.4g}: holds against everybody, for each report"),
            ("batch", batches),
            ("honest", f"{percent(self.honest)} of the reports follow the plan: at least {self.honest_reports:,}"),
            ("reader", READERS[self.reader]),
            ("neighbours", "one person's value is replaced; who takes part does not depend on values"),
        ]
        if self.epochs > 1:
            kept = "repeated memoised reports" if self.cohort else "fresh noise in each"
            rows.insert(4, ("epochs", f"{self.epochs:,}, {kept}"))
        if self.cohort:
            rows.insert(4, ("cohort", f"at least {self.cohort:,} people who are in exactly the same batches"))
        return rows

    def to_json(self) -> dict[str, Any]:
        """All fields and the words, as JSON values."""
        return {
            "epsilon": self.epsilon,
            "attack_epsilon": self.attack,
            "delta": self.delta,
            "local_epsilon": float(self.local_epsilon),
            "minimum_reports": self.reports,
            "honest_share": self.honest,
            "honest_reports": self.honest_reports,
            "reader": self.reader,
            "adjacency": "one value is replaced",
            "epochs": self.epochs,
            "cohort": self.cohort,
            "meaning": self.in_words(),
        }


def _factor(epsilon: float) -> str:
    factor = exp(min(epsilon, 700.0))
    return f"{factor:.4f}" if factor < 1.1 else f"{factor:.3g}" if factor < 1000 else f"{factor:,.0f}"


def honest_reports(reports: int, honest: float) -> int:
    """⌈honest·reports⌉."""
    return min(reports, ceil(Fraction(str(honest)) * reports))


def batch_guarantee(
    protocol: Protocol,
    reports: int | Sequence[int],
    delta: float,
    *,
    honest: float = 1.0,
    reader: Reader = "reports",
    epochs: int = 1,
    cohort: int | None = None,
) -> BatchGuarantee:
    """:meth:`sunzi.Plan.batch_guarantee` of a protocol."""
    sizes = _sizes(reports, epochs)
    delta, honest = check_delta(delta, honest_reports(min(sizes), check_honest(honest))), check_honest(honest)
    blanket = _blanket(protocol, reader)
    if cohort is not None:
        members = whole_number("cohort", cohort, 1, min(sizes))
        least, sizes_apart = honest_reports(members, honest), [members]
    else:
        least, sizes_apart = honest_reports(min(sizes), honest), sizes
    local = float(protocol.epsilon)
    if len(sizes_apart) == 1:
        epsilon = min(local, blanket.epsilon_above(least, delta)) if least > 1 else local
    else:
        epsilon = min(local * len(sizes), _composed(blanket, [honest_reports(size, honest) for size in sizes], delta))
    known = isinstance(blanket, BitSums) or blanket.attacked is not None
    most = least if cohort else honest_reports(max(sizes), honest)
    batches = 1 if cohort else len(sizes)
    attack = min(epsilon, blanket.epsilon_below(most, delta, batches)) if known and least > 1 else None
    return BatchGuarantee(epsilon, attack, delta, protocol.epsilon, min(sizes), honest, reader, len(sizes), cohort)


def minimum_batch(
    protocol: Protocol, epsilon: float, delta: float, *, honest: float = 1.0, reader: Reader = "reports"
) -> int:
    """:meth:`sunzi.Plan.minimum_batch` of a protocol."""
    target = real_number("epsilon", epsilon)
    if target <= 0:
        raise ParameterError(f"the central epsilon must be positive, got {shown(epsilon)}")
    honest, delta = check_honest(honest), check_delta(delta)
    if target >= protocol.epsilon:
        return 1
    blanket = _blanket(protocol, reader)

    def reached(users: int) -> bool:
        return blanket.largest_delta(users, target) <= delta

    low, high = 1, 64
    while not reached(high):
        low, high = high, high * 4
        if high > MOST_REPORTS:
            raise ParameterError(
                f"even {MOST_REPORTS:,} reports do not reach a central epsilon of {target:g} with delta = {delta:g}; "
                f"the plan's epsilon of {protocol.epsilon} is too large for that"
            )
    while high > low + 1 and high > low * _SIZE_PRECISION:
        middle = max(low + 1, round((low * high) ** 0.5))
        low, high = (low, middle) if reached(middle) else (middle, high)
    return ceil(high / Fraction(str(honest)))


def check_delta(delta: float, users: int | None = None) -> float:
    """A δ that figures can be given for; warns if it is so large that publishing whole reports would be allowed.

    Parameters
    ----------
    delta: the probability.
    users: the honest reports of the batch.

    >>> check_delta(1e-8, 1000)
    1e-08
    """
    number = real_number("delta", delta)
    if not LEAST_DELTA <= number < 1:
        raise ParameterError(f"delta must lie between {LEAST_DELTA:g} and 1, got {shown(delta)}")
    if users is not None and number * users >= 1:
        warnings.warn(
            f"delta = {number:g} is not below 1/{users:,}: even publishing one person's report would be allowed. "
            f"Take a much smaller delta, such as {min(1e-8, 0.01 / users):.0e}",
            PlanWarning,
            stacklevel=4,
        )
    return number


def check_honest(share: float) -> float:
    """The share of honest reports, if it is one."""
    number = real_number("honest", share)
    if not 0 < number <= 1:
        raise ParameterError(f"honest must be a share above 0 and at most 1, got {shown(share)}")
    return number


def _sizes(reports: int | Sequence[int], epochs: int) -> list[int]:
    if isinstance(reports, Sequence):
        if epochs != 1:
            raise ParameterError("give either one number of reports per epoch, or epochs=, not both")
        if not 1 <= len(reports) <= _MOST_EPOCHS:
            raise ParameterError(f"give 1 to {_MOST_EPOCHS:,} batches, got {len(reports):,}")
        return [whole_number("reports", size, 1, MOST_REPORTS) for size in reports]
    number = whole_number("epochs", epochs, 1, _MOST_EPOCHS)
    return [whole_number("reports", reports, 1, MOST_REPORTS)] * number


def _blanket(protocol: Protocol, reader: Reader) -> Blanket | BitSums:
    if reader not in get_args(Reader):
        raise PrivacyError(
            f"there is no central guarantee for a reader {shown(reader)}: someone who sees reports with ids, times or "
            f"addresses, as the collector's operator does, has the local epsilon only. Readers are {list(READERS)}"
        )
    return protocol.blanket() if reader == "reports" else protocol.counts_blanket()


def _composed(blanket: Blanket | BitSums, sizes: Sequence[int], delta: float) -> float:
    """ε of batches with fresh noise: their losses add up."""
    numbers = Counter(_rounded_down(size) for size in sizes)
    if len(numbers) == 1:
        return blanket.losses(min(numbers)).times(len(sizes)).epsilons(delta)[1]
    ranges = [blanket.losses(size).range for size in (min(numbers), max(numbers))]
    step = max(min(ranges) / _LEAST_STEPS, max(ranges) / _MOST_STEPS)  # all on one grid
    losses = [blanket.losses(size, step).times(number) for size, number in numbers.items()]
    return reduce(lambda first, second: first.plus(second), losses).epsilons(delta)[1]


def _rounded_down(size: int) -> int:
    unit = 1 << max(0, size.bit_length() - 1 - (_SIZES_PER_DOUBLING.bit_length() - 1))
    return size // unit * unit
