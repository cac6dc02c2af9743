"""How often intervals hold, over a grid of settings, for efficient and for planned weights:
tests/support/coverage_sweep.py --help.

Every run draws its users anew. ``single`` is the share of items that 95 % intervals cover, in the mean over items and
runs; ``band`` is the share of runs in which simultaneous intervals cover all items. Prints one JSON line per setting;
``--table`` turns such lines into the table of docs/mathematics.md.
"""

import argparse
import functools
import itertools
import json
import sys
import time
from pathlib import Path

import numpy as np
from scipy import stats

from sunzi.designs.base import Design
from sunzi.errors import EstimateError
from sunzi.numerics import intervals
from sunzi.numerics.intervals import normal_quantile
from sunzi.numerics.toeplitz import fold
from sunzi.plan import make_plan
from sunzi.protocols.modular_variance import ModularVariance, _fold_rows

SIZES = (2, 5, 20, 57, 200, 1000, 3000)
EPSILONS = (1, 2, 3, 4, 5, 6, 7, 8)
USERS = (100, 300, 1000, 3000, 10_000, 100_000)
HISTOGRAMS = ("point", "pair", "zipf 3", "zipf 1.1", "uniform")
PROTOCOLS = ("mss", "mss-compact", "ss-compact", "pgr")
RULES = ("efficient", "planned")
POPULATION_SHARE = 0.25
"""The share of settings about a population; the others are about the reporters."""

FALSE_ALARM = 1e-6
MOST_LISTED = 40


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
    """Keep decoders and the points of all messages between runs, for as long as ``setattr_like`` (such as
    monkeypatch.setattr) says.
    """
    decoders, list_points, listed = FormedDecoders(), Design.incidence, {}

    def formed(variance, residues):  # a function, to become a method
        return decoders.variances(variance, residues)

    def incidence(design, messages, limit=None):
        key = repr(design), messages.tobytes(), limit
        if key not in listed:
            if len(listed) == MOST_LISTED:
                listed.clear()
            listed[key] = list_points(design, messages, limit)
        return listed[key]

    setattr_like(ModularVariance, "_formed", formed)
    setattr_like(Design, "incidence", incidence)


def replace_exact(setattr_like=setattr):
    """Compute the exact intervals of all counts once, for as long as ``setattr_like`` (such as monkeypatch.setattr)
    says.
    """
    exact = intervals.exact

    @functools.cache
    def listed(reports, *setting):
        return exact(np.arange(reports + 1), reports, *setting)

    def looked_up(support, reports, *setting):
        low, high = listed(reports, *setting)
        return low[support], high[support]

    setattr_like(intervals, "exact", looked_up)


FIGURES = ("single", "band", "top", "colliding", "below", "above", "width")


def measure(plan, frequencies, users, runs, seed, target, rules=RULES):
    """For every way to weight reports, one row of :data:`FIGURES` per run: the covered share of items, whether the band
    held, the covered shares of the five most frequent items and of those that share a residue with the first of them,
    the shares missed below and above, and the mean width of intervals relative to normal ones. Estimates count for the
    weights that they have, so "efficient" lacks the runs with too few reports for it; runs with too few blocks to
    estimate from are left out.
    """
    generator, rows, items = np.random.default_rng(seed), {rule: [] for rule in rules}, np.arange(frequencies.size)
    heaviest, top = np.argmax(frequencies), np.argsort(-frequencies)[:5]
    moduli = getattr(plan.protocol, "moduli", ())
    sharing = [item for item in items if item != heaviest and any((item - heaviest) % m == 0 for m in moduli)]
    for _ in range(runs):
        holders = generator.multinomial(users, frequencies)
        tally = plan.simulate(np.repeat(items, holders), seed=int(generator.integers(2**62)))
        truth = holders / users if target == "reporters" else frequencies
        for rule in rules:
            try:
                estimate = plan.estimate(tally, weights=rule)
            except EstimateError:
                continue
            if estimate.weights != rule:
                continue
            low, high = estimate.interval(target=target)
            all_low, all_high = estimate.interval(target=target, simultaneous=True)
            covered, is_held = (low <= truth) & (truth <= high), ((all_low <= truth) & (truth <= all_high)).all()
            groups = [np.mean(covered[members]) if len(members) else np.nan for members in (top, sharing)]
            normal = 2 * normal_quantile(0.95) * np.mean(estimate.standard_errors(target))
            missed = [np.mean(truth < low), np.mean(truth > high)]
            rows[rule].append([np.mean(covered), is_held, *groups, *missed, np.mean(high - low) / normal])
    return {rule: np.array(found, dtype=float).reshape(-1, len(FIGURES)) for rule, found in rows.items()}


def fewest_held(runs):
    """At least so many of the runs hold, except for a false alarm, if bands hold in 94 %."""
    return int(stats.binom.ppf(FALSE_ALARM, runs, 0.94))


def sweep(options):
    """One dictionary per setting, in random order until the time is over."""
    replace_formed()
    chance, began = np.random.default_rng(options.seed), time.monotonic()
    settings = list(itertools.product(options.protocols, options.sizes, EPSILONS, USERS, HISTOGRAMS))
    for place in chance.permutation(len(settings))[: round(options.share * len(settings))]:
        if time.monotonic() - began > 60 * options.minutes:
            return
        name, size, epsilon, users, kind = settings[place]
        target = "population" if chance.random() < POPULATION_SHARE else "reporters"
        plan = make_plan(name, size, epsilon)
        rarest = min(response.probabilities.false for response in plan.protocol.responses)
        frequencies = histogram(kind, size, getattr(plan.protocol, "moduli", ()))
        runs = max(20, min(options.runs, 200_000 // size))
        setting = {"protocol": name, "k": size, "epsilon": epsilon, "n": users, "histogram": kind, "target": target}
        for rule, rows in measure(plan, frequencies, users, runs, [options.seed, place], target, options.rules).items():
            if len(rows):
                figures = dict(zip(FIGURES, rows.mean(axis=0).tolist(), strict=True))
                yield {**setting, "weights": rule, "runs": len(rows), "nq": rarest * users, **figures}


GROUPS = {
    "below 1": lambda rare: rare < 1,
    "1 to 10": lambda rare: 1 <= rare < 10,
    "10 to 100": lambda rare: 10 <= rare < 100,
    "100 to 1,000": lambda rare: 100 <= rare < 1000,
    "1,000 and more": lambda rare: rare >= 1000,
}


def table(found):
    """Coverage by the weights and the expected number of the rarest supports."""
    yield "| weights | n·q | settings | runs | single (by setting) | top five | colliding | bands (lowest) | width |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for rule, (name, belongs) in itertools.product(RULES, GROUPS.items()):
        group = [row for row in found if row["weights"] == rule and belongs(row["nq"])]
        if not group:
            continue
        runs = np.array([row["runs"] for row in group])
        figures = {key: np.array([row[key] for row in group]) for key in FIGURES}
        known = {key: ~np.isnan(values) for key, values in figures.items()}
        mean = {
            key: f"{100 * np.average(values[known[key]], weights=runs[known[key]]):.1f} %" if known[key].any() else "–"
            for key, values in figures.items()
        }
        low, high, least = (100 * figure for figure in (*np.quantile(figures["single"], [0, 1]), figures["band"].min()))
        yield (
            f"| {rule} | {name} | {len(group)} | {runs.sum():,} | {mean['single']} ({low:.1f}–{high:.1f}) "
            f"| {mean['top']} | {mean['colliding']} | {mean['band']} ({least:.1f}) "
            f"| {np.nanmedian(figures['width']):.3f} |"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200, help="per setting; fewer on large domains")
    parser.add_argument("--share", type=float, default=0.1, help="the share of all settings, chosen at random")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--protocols", nargs="*", choices=PROTOCOLS, default=PROTOCOLS)
    parser.add_argument("--rules", nargs="*", choices=RULES, default=RULES, help="how reports are weighted")
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
