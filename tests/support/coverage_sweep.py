"""How often the intervals of modular protocols hold, over a grid of settings: tests/support/coverage_sweep.py --help.

Every run draws its users anew. ``single`` is the share of items that 95 % intervals cover, in the mean over items and
runs; ``band`` is the share of runs in which simultaneous intervals cover all items. Prints one JSON line per setting;
``--table`` turns such lines into the table of docs/mathematics.md.
"""

import argparse
import itertools
import json
import sys
import time
from pathlib import Path

import numpy as np
from scipy import stats

from sunzi.errors import EstimateError
from sunzi.numerics.intervals import normal_quantile
from sunzi.numerics.toeplitz import fold
from sunzi.plan import make_plan
from sunzi.protocols.modular_variance import ModularVariance, _fold_rows

SIZES = (2, 5, 20, 57, 200, 1000, 3000)
EPSILONS = (1, 2, 3, 4, 5, 6, 7, 8)
USERS = (100, 300, 1000, 3000, 10_000, 100_000)
HISTOGRAMS = ("point", "pair", "zipf 3", "zipf 1.1", "uniform")
POPULATION_SHARE = 0.25
"""The share of settings about a population; the others are about the reporters."""

FALSE_ALARM = 1e-6


def histogram(name, size, moduli):
    """Everything on one value, on two values that share a residue, Zipf in random order, or uniform."""
    frequencies, heaviest = np.zeros(size), size // 3
    if name == "point":
        frequencies[heaviest] = 1
    elif name == "pair":
        colliding = [heaviest + modulus for modulus in moduli if heaviest + modulus < size]
        frequencies[heaviest] += 0.6
        frequencies[colliding[0] if colliding else size - 1] += 0.4
    elif name == "uniform":
        frequencies[:] = 1 / size
    else:
        weights = 1 / np.arange(1, size + 1) ** float(name.split()[1])
        frequencies = np.random.default_rng(5).permutation(weights / weights.sum())
    return frequencies


class FormedDecoders:
    """What :meth:`ModularVariance._formed` computes, with the decoder of the last plan kept between runs."""

    def __init__(self):
        self.gram, self.parts = None, []

    def variances(self, variance, residues):
        """In place of the method, ``variance`` being the object."""
        if variance.gram is not self.gram:
            self.gram, self.parts = variance.gram, list(self._form(variance, residues))
        total = np.zeros(variance.gram.size)
        blocks = zip(self.parts, residues, variance.moments, variance.reports, strict=True)
        for (rows, squares, sums), block, moments, reports in blocks:
            along = rows @ block
            found = squares @ (moments.light + moments.heavy * block)
            found += moments.constant * sums**2 + 2 * moments.mixed * sums * along - along**2
            total += found / reports
        return total

    def _form(self, variance, residues):
        ones = variance.gram.ones_solution
        inverse = np.vstack([rows.copy() for _, rows in variance.gram.inverse_rows(256)])
        for block, weight in zip(residues, variance.weights.tolist(), strict=True):
            rows = _fold_rows(inverse, block.size)
            rows -= np.outer(ones / ones.sum(), fold(ones, block.size))
            rows *= weight
            yield rows, rows**2, rows.sum(axis=1)


def replace_formed(setattr_like=setattr):
    """Keep decoders between runs, for as long as ``setattr_like`` (such as monkeypatch.setattr) says."""
    decoders = FormedDecoders()

    def formed(variance, residues):  # a function, to become a method
        return decoders.variances(variance, residues)

    setattr_like(ModularVariance, "_formed", formed)


def measure(plan, frequencies, users, runs, seed, target):
    """One row per run: the covered share of items, whether the band held, the shares missed below and above, and the
    mean width of intervals relative to normal ones. Runs with too few blocks to estimate from are left out.
    """
    generator, rows = np.random.default_rng(seed), []
    for _ in range(runs):
        holders = generator.multinomial(users, frequencies)
        tally = plan.simulate(np.repeat(np.arange(frequencies.size), holders), seed=int(generator.integers(2**62)))
        try:
            estimate = plan.estimate(tally)
        except EstimateError:
            continue
        truth = holders / users if target == "reporters" else frequencies
        low, high = estimate.interval(target=target)
        all_low, all_high = estimate.interval(target=target, simultaneous=True)
        is_held = bool(((all_low <= truth) & (truth <= all_high)).all())
        below, above = np.mean(truth < low), np.mean(truth > high)
        normal = 2 * normal_quantile(0.95) * np.mean(estimate.standard_errors(target))
        rows.append([np.mean((low <= truth) & (truth <= high)), is_held, below, above, np.mean(high - low) / normal])
    return np.array(rows).reshape(-1, 5)


def fewest_held(runs):
    """At least so many of the runs hold, except for a false alarm, if bands hold in 94 %."""
    return int(stats.binom.ppf(FALSE_ALARM, runs, 0.94))


def sweep(options):
    """One dictionary per setting, in random order until the time is over."""
    replace_formed()
    chance, began = np.random.default_rng(options.seed), time.monotonic()
    plans = list(itertools.product(("mss", "mss-compact"), options.sizes, EPSILONS))
    for name, size, epsilon in (plans[place] for place in chance.permutation(len(plans))):
        plan = make_plan(name, size, epsilon)
        rarest = min(false for _, false in plan.protocol.support_probabilities())
        for users, kind in itertools.product(USERS, HISTOGRAMS):
            wanted, target = chance.random() < options.share, "reporters"
            if chance.random() < POPULATION_SHARE:
                target = "population"
            if not wanted or time.monotonic() - began > 60 * options.minutes:
                continue
            frequencies = histogram(kind, size, plan.protocol.moduli)
            rows = measure(plan, frequencies, users, max(20, min(options.runs, 200_000 // size)), options.seed, target)
            if len(rows):
                setting = {"protocol": name, "k": size, "epsilon": epsilon, "n": users, "histogram": kind}
                figures = zip(["single", "band", "below", "above", "width"], rows.mean(axis=0).tolist(), strict=True)
                yield {**setting, "target": target, "runs": len(rows), "nq": rarest * users, **dict(figures)}


GROUPS = {
    "below 1": lambda rare: rare < 1,
    "1 to 10": lambda rare: 1 <= rare < 10,
    "10 to 100": lambda rare: 10 <= rare < 100,
    "100 to 1,000": lambda rare: 100 <= rare < 1000,
    "1,000 and more": lambda rare: rare >= 1000,
}


def table(found):
    """Coverage by the expected number of the rarest supports."""
    yield "| n·q | settings | runs | single, mean (lowest–highest setting) | bands that hold | width against normal |"
    yield "|---|---|---|---|---|---|"
    for name, belongs in GROUPS.items():
        group = [row for row in found if belongs(row["nq"])]
        if not group:
            continue
        runs = np.array([row["runs"] for row in group])
        single, band, width = (np.array([row[key] for row in group]) for key in ("single", "band", "width"))
        yield (
            f"| {name} | {len(group)} | {runs.sum():,} | {100 * runs @ single / runs.sum():.1f} % "
            f"({100 * single.min():.1f}–{100 * single.max():.1f}) | {100 * runs @ band / runs.sum():.1f} % "
            f"(lowest {100 * band.min():.1f}) | {np.nanmedian(width):.3f} |"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200, help="per setting; fewer on large domains")
    parser.add_argument("--share", type=float, default=0.1, help="the share of all settings, chosen at random")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES)
    parser.add_argument("--table", type=Path, nargs="*", help="make the table from files of JSON lines instead")
    options = parser.parse_args()
    if options.table:
        found = [json.loads(line) for path in options.table for line in path.read_text().splitlines()]
        print("\n".join(table(found)))
        return 0
    failed = 0
    for row in sweep(options):
        print(json.dumps(row), flush=True)
        failed += round(row["band"] * row["runs"]) < fewest_held(row["runs"])
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
