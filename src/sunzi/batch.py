"""The guarantee of a batch: what someone can learn about one person who sees only a published tally, or shuffled
reports (docs/batch.md, docs/mathematics.md §17).
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from fractions import Fraction
from functools import reduce
from itertools import groupby, pairwise
from math import ceil, exp
from typing import Any, Literal, get_args

import numpy as np

from sunzi.client.errors import ParameterError, PrivacyError, shown, whole_number
from sunzi.errors import PlanWarning
from sunzi.formatting import counted, percent
from sunzi.numerics.bit_sums import BitSums
from sunzi.numerics.blanket import LEAST_DELTA, Blanket
from sunzi.numerics.checks import real_number
from sunzi.protocols.base import Protocol
from sunzi.protocols.registry import is_built_in

Reader = Literal["reports", "tally"]
READERS: dict[Reader, str] = {
    "reports": "sees all reports of the batch in random order, without ids, times or addresses",
    "tally": "sees the tally and estimates of the batch, and no report",
}

_PUBLISHED = (
    "only whole batches, and nothing that splits them: no snapshot, group or corrected version. Whether a batch is "
    "published depends on its number of reports only"
)

MOST_REPORTS = 10**12
_MOST_EPOCHS = 10_000
# Batches of similar size are treated alike, in at most this many groups; for attacks, which take longer, in fewer.
_MOST_GROUPS, _MOST_ATTACKED = 8, 4
# More distinct sizes than this are first rounded down to 16 per factor of two.
_MANY_SIZES, _SIZES_PER_DOUBLING = 256, 16
# Below this ε the likelihood ratio rounds to 1.
_LEAST_EPSILON = 1e-9
_LARGEST_SHOWN = 20.0
_SIZE_PRECISION = 1.003


@dataclass(frozen=True)
class BatchGuarantee:
    """(ε, δ)-differential privacy of published batches, with all its conditions.

    It holds when one person's value is replaced by another, for any data of the other users, as long as at least
    ``honest_reports`` clients follow the plan; the others may collude with the reader.

    >>> import sunzi
    >>> guarantee = sunzi.make_plan("grr", ["no", "yes"], epsilon=1).batch_guarantee(100_000, delta=1e-8)
    >>> guarantee.epsilon < 0.1 < guarantee.local_epsilon
    True
    """

    epsilon: float
    """The central ε, proven."""
    attack_epsilon: float | None
    """A lower bound from an attack: no smaller ε can be claimed. None if no attack is known."""
    delta: float
    local_epsilon: Fraction
    """The ε of one report, which holds against everyone and needs no trust."""
    minimum_reports: int
    """The size of the smallest batch. Smaller batches must not be published."""
    honest_share: float
    """The assumed share of clients that follow the plan."""
    reader: Reader
    """What the reader sees: shuffled "reports", or their "tally" alone."""
    protocol: str
    domain_size: int
    plan: str | None = None
    """The fingerprint of the plan."""
    epochs: int = 1
    """Batches with fresh noise that contain the same person."""
    cohort: int | None = None
    """The people who are in exactly the same batches, if devices repeat memoised reports."""

    @property
    def honest_reports(self) -> int:
        """n: how many reports of the smallest batch, or of the cohort, follow the plan, the person's own included."""
        return honest_reports(self.cohort or self.minimum_reports, self.honest_share)

    def in_words(self) -> str:
        """The guarantee in two sentences."""
        seen = "the published counts" if self.reader == "tally" else "the shuffled reports"
        several = f" of {self.epochs:,} batches" if self.epochs > 1 else ""
        chance = f"is at most {_factor(self.epsilon)} times as likely under one value as under any other"
        local = _factor(float(self.local_epsilon) * (1 if self.cohort else self.epochs))
        return (
            f"Any conclusion about one person from {seen}{several} {chance}, plus a probability of at most "
            f"{self.delta:g}. For someone who sees single reports as they arrive, such as the collector's operator, "
            f"the factor is {local}: the batch does not protect against them."
        )

    def facts(self) -> list[tuple[str, str]]:
        """The guarantee and all its conditions, as pairs of a name and a text."""
        whose = "the cohort's members" if self.cohort else "the reports"
        batches = f"at least {counted(self.minimum_reports, 'report')} in each batch; do not publish smaller ones"
        about = f"{self.protocol}, {counted(self.domain_size, 'value')}"
        rows = [
            ("central epsilon", f"{rounded(self.epsilon, 4, up=True)}, with delta = {self.delta:g} (proven)"),
            ("attack", _attack_in_words(self.attack_epsilon)),
            ("local epsilon", f"{float(self.local_epsilon):.4g}: holds against everyone, for each report"),
            ("batch", batches),
            ("honest", f"{percent(self.honest_share)} of {whose} follow the plan: at least {self.honest_reports:,}"),
            ("reader", READERS[self.reader]),
            ("published", _PUBLISHED),
            (
                "neighbours",
                "one person's value is replaced; everyone has one report per batch, whatever the value",
            ),
        ]
        if self.epochs > 1:
            kept = "repeated memoised reports" if self.cohort else "fresh noise in each"
            rows.insert(4, ("epochs", f"{self.epochs:,}, {kept}"))
        if self.cohort:
            rows.insert(
                4, ("cohort", f"at least {self.cohort:,} people in exactly the same batches, with unchanged values")
            )
        return [("plan", about if self.plan is None else f"{about}, {self.plan}"), *rows]

    def to_dict(self) -> dict[str, Any]:
        """All fields, and the meaning in words, as JSON values."""
        return {
            "protocol": self.protocol,
            "domain_size": self.domain_size,
            "plan": self.plan,
            "epsilon": self.epsilon,
            "attack_epsilon": self.attack_epsilon,
            "delta": self.delta,
            "local_epsilon": float(self.local_epsilon),
            "minimum_reports": self.minimum_reports,
            "honest_share": self.honest_share,
            "honest_reports": self.honest_reports,
            "reader": self.reader,
            "adjacency": "one value is replaced",
            "epochs": self.epochs,
            "cohort": self.cohort,
            "meaning": self.in_words(),
        }


def _attack_in_words(epsilon: float | None) -> str:
    if epsilon is None:
        return "unknown"
    return f"{rounded(epsilon, 4, up=False)}: no smaller epsilon can be claimed" if epsilon else "none succeeds"


def _factor(epsilon: float) -> str:
    """e^ε, rounded up."""
    if epsilon > _LARGEST_SHOWN:
        return f"e^{rounded(epsilon, 3, up=True)}"
    return rounded(exp(epsilon), 5 if epsilon < 0.1 else 3, up=True)


def rounded(number: float, digits: int, up: bool) -> str:
    """The number to ``digits`` significant digits, rounded up or down.

    >>> rounded(0.086572, 4, up=True), rounded(0.086572, 4, up=False), rounded(1234567, 3, up=True)
    ('0.08658', '0.08657', '1,240,000')
    """
    exact = Decimal(number)
    places = digits - 1 - exact.adjusted()
    found = exact.quantize(Decimal(1).scaleb(-places), ROUND_CEILING if up else ROUND_FLOOR)
    return f"{int(found):,}" if places <= 0 else f"{found:f}"


def honest_reports(reports: int, honest: float) -> int:
    """⌈honest·reports⌉."""
    return min(reports, ceil(Fraction(str(honest)) * reports))


def batch_size(honest_reports: int, honest: float) -> int:
    """How many reports a batch needs to hold that many honest ones."""
    return ceil(honest_reports / Fraction(str(honest)))  # 7 / 0.7 is 10, though not in floating point


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
    honest = check_honest(honest)
    delta = check_delta(delta, honest_reports(max(sizes), honest))
    blanket = _blanket(protocol, reader)
    sizes_apart = sizes if cohort is None else [whole_number("cohort", cohort, 1, min(sizes))]
    epsilon, attack = float(protocol.epsilon) * len(sizes_apart), None
    if protocol.epsilon > _LEAST_EPSILON:
        honest_sizes = sorted(honest_reports(size, honest) for size in sizes_apart)
        epsilon = min(epsilon, _composed(blanket, _grouped(honest_sizes, _MOST_GROUPS), delta))
        if blanket.has_attack:
            attack = min(epsilon, _attacked(blanket, _grouped(honest_sizes, _MOST_ATTACKED), delta))
    return BatchGuarantee(
        epsilon,
        attack,
        delta,
        protocol.epsilon,
        min(sizes),
        honest,
        reader,
        protocol.name,
        protocol.domain_size,
        epochs=len(sizes),
        cohort=cohort,
    )


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
        low, high = high, min(high * 4, MOST_REPORTS)
        if low == MOST_REPORTS:
            raise ParameterError(
                f"even {MOST_REPORTS:,} reports do not reach a central epsilon of {target:g} with delta = {delta:g}; "
                f"the plan's epsilon of {protocol.epsilon} is too large for that"
            )
    while high > low + 1 and high > low * _SIZE_PRECISION:
        middle = max(low + 1, round((low * high) ** 0.5))
        low, high = (low, middle) if reached(middle) else (middle, high)
    check_delta(delta, high)
    return batch_size(high, honest)


def check_delta(delta: float, users: int | None = None, stacklevel: int = 4) -> float:
    """Validate δ; warn if it is so large that it would allow publishing someone's report.

    Parameters
    ----------
    delta: the probability.
    users: the honest reports of the largest batch.
    stacklevel: which caller the warning points to, as for :func:`warnings.warn`.

    >>> check_delta(1e-8, 1000)
    1e-08
    """
    number = real_number("delta", delta)
    if not LEAST_DELTA <= number < 1:
        raise ParameterError(f"delta must lie between {LEAST_DELTA:g} and 1, got {shown(delta)}")
    if users is not None and number * users >= 1:
        warnings.warn(
            f"delta = {number:g} is not below 1/{users:,}: even publishing one person's report would be allowed. "
            f"Use a much smaller delta, such as {min(1e-8, 0.01 / users):.0e}",
            PlanWarning,
            stacklevel=stacklevel,
        )
    return number


def check_honest(share: float) -> float:
    """Validate the share of honest reports."""
    number = real_number("honest", share)
    if not 0 < number <= 1:
        raise ParameterError(f"honest must be a share above 0 and at most 1, got {shown(share)}")
    return number


def _sizes(reports: int | Sequence[int], epochs: int) -> list[int]:
    if isinstance(reports, (Sequence, np.ndarray)) and not isinstance(reports, (str, bytes)) and np.ndim(reports):
        if epochs != 1:
            raise ParameterError("give either one number of reports per epoch, or epochs=, not both")
        if not 1 <= len(reports) <= _MOST_EPOCHS:
            raise ParameterError(f"give 1 to {_MOST_EPOCHS:,} batches, got {len(reports):,}")
        return [whole_number("reports", size, 1, MOST_REPORTS) for size in reports]
    number = whole_number("epochs", epochs, 1, _MOST_EPOCHS)
    # A 0-dimensional array is a number, too.
    return [whole_number("reports", np.asarray(reports).item(), 1, MOST_REPORTS)] * number


def _blanket(protocol: Protocol, reader: Reader) -> Blanket | BitSums:
    if reader not in get_args(Reader):
        raise PrivacyError(
            f"there is no central guarantee for a reader {shown(reader)}: someone who sees reports with ids, times or "
            f"addresses, as the collector's operator does, has the local epsilon only. Readers are {list(READERS)}"
        )
    if not is_built_in(protocol):
        return Blanket.of_any(exp(protocol.epsilon))
    return protocol.blanket() if reader == "reports" else protocol.counts_blanket()


def _grouped(sizes: list[int], most: int) -> list[list[int]]:
    """Sizes in ascending order, in a few groups of similar ones. The loss of a batch is roughly proportional to the
    root of 1/size, so groups are merged where counting all sizes as the smallest adds least to the sum of 1/size.
    """
    key = _rounded_down if len(set(sizes)) > _MANY_SIZES else None
    groups = [list(group) for _, group in groupby(sizes, key)]
    while len(groups) > most:
        added = [len(above) * (1 / below[0] - 1 / above[0]) for below, above in pairwise(groups)]
        least = added.index(min(added))
        groups[least : least + 2] = [groups[least] + groups[least + 1]]
    return groups


def _rounded_down(size: int) -> int:
    unit = 1 << max(0, size.bit_length() - _SIZES_PER_DOUBLING.bit_length())
    return size // unit * unit


def _composed(blanket: Blanket | BitSums, groups: list[list[int]], delta: float) -> float:
    """The ε of batches with fresh noise, whose losses add up. All batches of a group count as its smallest."""
    batches = sum(map(len, groups))
    if batches == 1:
        return blanket.epsilon_above(groups[0][0], delta)
    unseen, quickly = delta / (100 * batches), len(groups) > 1
    losses = [blanket.losses(group[0], unseen, quickly=quickly).times(len(group)) for group in groups]
    return reduce(lambda first, second: first.plus(second), reversed(losses)).epsilons(delta)[1]  # finest grids first


def _attacked(blanket: Blanket | BitSums, groups: list[list[int]], delta: float) -> float:
    """The ε of attackers who read the smallest batch alone, or all batches. All batches of a group count as its
    largest.
    """
    alone = blanket.epsilon_below(groups[0][0], delta)
    if sum(map(len, groups)) == 1:
        return alone
    found = [[attack.times(len(group)) for attack in blanket.attacks(group[-1])] for group in groups]
    together = [reduce(lambda first, second: first.plus(second), kind) for kind in zip(*found, strict=True)]
    return max(alone, *(evidence.epsilon_below(delta) for evidence in together))
