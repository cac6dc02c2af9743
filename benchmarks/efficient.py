"""The efficient estimate, from tally to frequencies, against the planned linear map."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from benchmarks import settings
from benchmarks.measure import compare
from benchmarks.modular import modelled_tally
from benchmarks.results import Result
from sunzi.plan import Plan, make_plan
from sunzi.tally import Tally

USERS = 100_000
DOMAIN_SIZES = (1_024, 22_000, 200_000)
EPSILONS = {"mss": (1, 3, 5), "ss-compact": (1, 3), "mss-compact": (1, 3)}


def efficient(scale: float) -> Iterator[Result]:
    """The default estimate of 100,000 users against ``weights="planned"``, both warm."""
    users, rounds = settings.users(USERS, scale), settings.rounds(3, scale)
    for full_size in DOMAIN_SIZES:
        size = settings.domain_size(full_size, scale)
        for name, epsilons in EPSILONS.items():
            for epsilon in epsilons:
                plan = make_plan(name, size, epsilon)
                yield _compared(plan, tally_of(plan, users), rounds)


def tally_of(plan: Plan, users: int) -> Tally:
    """A tally of this number of users; of mss by the normal approximation, since its subsets take long to draw."""
    if plan.protocol.name == "mss":
        return modelled_tally(plan, users)
    return plan.simulate(settings.values(users, plan.domain.size), seed=settings.SEED)


def _compared(plan: Plan, tally: Tally, rounds: int) -> Result:
    name, size, epsilon = plan.protocol.name, plan.domain.size, plan.epsilon
    times = compare(partial(plan.estimate, tally), partial(plan.estimate, tally, weights="planned"), rounds)
    return Result(
        f"efficient/{name}/k-{size}/epsilon-{epsilon}",
        f"efficient estimate of {name}, {size:,} values, ε = {epsilon}",
        times.measured,
        "its planned linear map",
        times.reference,
        times.slowdown,
        details={"domain_size": size, "epsilon": float(epsilon), "users": tally.reports},
    )
