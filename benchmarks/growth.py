"""How running time grows with users, domain size, ε and number of moduli, varied one at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from math import exp

import numpy as np

from benchmarks import settings
from benchmarks.measure import seconds
from benchmarks.results import Result, duration
from benchmarks.servers import batch_of
from sunzi.client.randomness import SystemSource
from sunzi.numerics.randomness import ReproducibleSource
from sunzi.plan import make_plan

USERS, DOMAIN_SIZE, MODULI = 100_000, 20_000, 16
AXES: dict[str, tuple[int, ...]] = {
    "users": (10_000, 100_000, 1_000_000),
    "domain_size": (5_000, 20_000, 80_000, 320_000),
    "epsilon": (1, 2, 3, 4, 5),
    "moduli": (8, 16, 32, 64),
}
STEPS = ("randomise", "tally", "decode", "errors")
_SETTING = (
    f"`mss-compact`: {DOMAIN_SIZE:,} values, ε = {settings.EPSILON}, {MODULI} moduli and {USERS:,} users, "
    "with one of these changed in each table."
)
HEADINGS = {"users": "users n", "domain_size": "values k", "epsilon": "ε", "moduli": "moduli ℓ"}


def growth(scale: float) -> Iterator[Result]:
    """mss-compact at 20,000 values, ε = 2, 16 moduli and 100,000 users, decoded by planned weights, varying one of them
    at a time.
    """
    for axis, points in AXES.items():
        for point in points if scale >= 1 else points[:2]:
            setting = {"users": USERS, "domain_size": DOMAIN_SIZE, "epsilon": settings.EPSILON, "moduli": MODULI}
            setting[axis] = point
            taken = _step_seconds(setting, scale)
            yield Result(
                f"growth/{axis}/{point}",
                f"mss-compact with {HEADINGS[axis]} = {point:,}: from values to standard errors",
                sum(taken.values()),
                details={"axis": axis, "point": point, "steps": taken},
            )


def _step_seconds(setting: dict[str, int], scale: float) -> dict[str, float]:
    size, users = settings.domain_size(setting["domain_size"], scale), settings.users(setting["users"], scale)
    plan = make_plan("mss-compact", size, setting["epsilon"], count=setting["moduli"])
    values = settings.values(users, size)
    batch = batch_of(plan, plan.protocol.randomize(values, ReproducibleSource(settings.SEED)))
    tally = plan.tally(batch)
    rounds = settings.rounds(3, scale)
    estimates = [plan.estimate(tally, weights="planned") for _ in range(rounds)]
    return {
        "randomise": seconds(partial(plan.protocol.randomize, values, SystemSource()), rounds),
        "tally": seconds(partial(plan.tally, batch), rounds),
        "decode": seconds(partial(plan.estimate, tally, weights="planned"), rounds),
        "errors": seconds(lambda: estimates.pop().standard_errors(), rounds, warm_up=False),
    }


def growth_markdown(results: Sequence[Result]) -> str:
    """One table per axis; its last row is the fitted law."""
    grown = [result for result in results if result.name.startswith("growth/")]
    tables = []
    for axis, heading in HEADINGS.items():
        rows = [result for result in grown if result.details["axis"] == axis]
        if len(rows) > 1:
            tables.append(_axis_table(heading, axis, rows))
    return "\n\n".join([_SETTING, *tables]) if tables else ""


def _axis_table(heading: str, axis: str, rows: Sequence[Result]) -> str:
    lines = [f"| {heading} | {' | '.join(STEPS)} |", "|---" * (len(STEPS) + 1) + "|"]
    for result in rows:
        cells = [duration(result.details["steps"][step]) for step in STEPS]
        lines.append(f"| {result.details['point']:,} | {' | '.join(cells)} |")
    points = np.array([result.details["point"] for result in rows], dtype=np.float64)
    laws = [fitted_law(axis, points, [result.details["steps"][step] for result in rows]) for step in STEPS]
    return "\n".join([*lines, f"| grows as | {' | '.join(laws)} |"])


def fitted_law(axis: str, points: np.ndarray[tuple[int], np.dtype[np.float64]], taken: Sequence[float]) -> str:
    """Fit a power law, or for ε an exponential law, by least squares on logarithms."""
    symbol = {"users": "n", "domain_size": "k", "moduli": "ℓ", "epsilon": "ε"}[axis]
    if axis == "epsilon":
        return f"{exp(np.polyfit(points, np.log(taken), 1)[0]):.2f}^{symbol}"
    return f"{symbol}^{np.polyfit(np.log(points), np.log(taken), 1)[0]:.2f}"
