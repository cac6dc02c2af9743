"""Open domains: discovery among words and among 64-bit strings, beside the prefix extending method with local hashing.

`python -m benchmarks.open_domains RUNS` prints the table of docs/open-domains.md, and how many intervals held and
collections of random texts found any; `python -m benchmarks.open_domains list` its figures of a list of ten million.

The words are those of the docstrings of the standard library of Python 3.11 (PSF License), as frequent as there, in
words.tsv. The public examples for the prior are the words of Python's manual, `pydoc_data.topics`.
"""

from __future__ import annotations

import re
import resource
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import settings
from benchmarks.results import Result
from sunzi._typing import Floats
from sunzi.domains.texts import OpenDomain
from sunzi.plan import Plan, make_plan
from sunzi.tally import Tally

EPSILONS = (1, 2, 4)
RUNS = 20
LONGEST = 12
STRINGS = 100_000
WANTED = {"words": {1: 10, 2: 25, 4: 80}, "64-bit strings": {1: 5, 2: 10, 4: 35}}
"""How many of the most frequent values F1 is about."""
REFERENCE_RUNS = {1: 20, 2: 10, 4: 4}
"""On how many collections the reference, which is slow, is measured."""
FALSE_SHARE = 0.1
F1_RATIO = 1.0
SPEEDUP = {1: 3.0, 2: 10.0, 4: 10.0}
"""At ε = 1 the reference follows ten prefixes or fewer, which is quick; following more, it finds no more."""
_LETTER_BITS, _HEX = 5, "0123456789abcdef"


@dataclass(frozen=True)
class Population:
    """Texts, how frequent they are, and the bits that name them for the reference."""

    name: str
    domain: OpenDomain
    texts: tuple[str, ...]
    shares: Floats
    codes: NDArray[np.uint64]
    bits: int

    def top(self, number: int) -> set[str]:
        """The most frequent texts."""
        return {self.texts[place] for place in np.argsort(-self.shares, kind="stable")[:number]}


@lru_cache(maxsize=1)
def words() -> Population:
    """Words of up to 12 letters, as frequent as in words.tsv."""
    lines = Path(__file__).with_name("words.tsv").read_text(encoding="utf-8").splitlines()
    texts, numbers = zip(*(line.split("\t") for line in lines), strict=True)
    counts = np.array(numbers, dtype=np.float64)
    codes = [int("".join(f"{ord(letter) - 96:05b}" for letter in text.ljust(LONGEST, "`")), 2) for text in texts]
    domain = OpenDomain("letters", LONGEST)
    return Population(
        "words", domain, texts, counts / counts.sum(), np.array(codes, dtype=np.uint64), _LETTER_BITS * LONGEST
    )


def _words(text: str) -> list[str]:
    return [word for word in re.findall("[a-z]+", text.lower()) if len(word) <= LONGEST]


def public_words() -> list[str]:
    """The words of Python's manual."""
    from pydoc_data.topics import topics

    return _words(" ".join(topics.values()))


@lru_cache(maxsize=1)
def strings() -> Population:
    """Random strings of 64 bits as 16 hexadecimal digits, by Zipf's law with exponent 1."""
    codes = np.random.default_rng(settings.SEED).integers(0, 1 << 63, STRINGS, dtype=np.uint64) * np.uint64(2)
    shares = 1 / np.arange(1, STRINGS + 1)
    texts = tuple(f"{code:016x}" for code in codes.tolist())
    return Population("64-bit strings", OpenDomain(list(_HEX), 16), texts, shares / shares.sum(), codes, 64)


@dataclass
class Score:
    """What was found over all runs."""

    recall: list[float] = field(default_factory=list)
    precision: list[float] = field(default_factory=list)
    f1: list[float] = field(default_factory=list)
    true: list[int] = field(default_factory=list)
    false: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    held: list[bool] = field(default_factory=list)
    """Of every interval, whether it has the share of the users."""

    def add(self, found: list[str], top: set[str], held: set[str], seconds: float) -> None:
        """Texts, most frequent first; recall, precision and F1 are about as many of them as are wanted."""
        hits, named = len(top & set(found[: len(top)])), min(len(found), len(top))
        self.recall.append(hits / len(top))
        self.precision.append(hits / named if named else 1.0)
        self.f1.append(2 * hits / (len(top) + named))
        self.true.append(len(held & set(found)))
        self.false.append(len(set(found) - held))
        self.seconds.append(seconds)

    def mean(self, name: str) -> float:
        """The mean of a column."""
        return float(np.mean(getattr(self, name)))


def tally_of(plan: Plan, population: Population, drawn: NDArray[np.int64], seed: int) -> Tally:
    """A simulated collection; digits are found once per text instead of once per user."""
    from sunzi.numerics.randomness import ReproducibleSource

    digits = population.domain.digits(population.texts).astype(np.int64)
    counters = plan.protocol.simulate(digits[drawn], ReproducibleSource(seed))
    return Tally(plan.digest, plan.protocol.tally_layout, drawn.size, counters)


def measure(population: Population, epsilon: int, users: int, runs: int) -> dict[str, Score]:
    """Ours without help, ours with public words or with a list of all texts, and the reference, on the same users."""
    from benchmarks.prefix_extending import PrefixExtending  # needs numba, so only here

    plan = make_plan("prefixes", population.domain, epsilon)
    listing = make_plan("prefixes", population.domain, epsilon, list_only=True)
    wanted = WANTED[population.name][epsilon]
    top, scores = population.top(wanted), {name: Score() for name in ("ours", "prior", "list", "reference")}
    helps: dict[str, dict[str, Any]] = {"ours": {}, "list": {"candidates": population.texts}}
    if population.name == "words":
        helps["prior"] = {"prior": public_words()}
    for run in range(runs):
        drawn = np.random.default_rng([settings.SEED, run]).choice(len(population.texts), users, p=population.shares)
        places, numbers = np.unique(drawn, return_counts=True)
        truth = {
            population.texts[place]: number / users
            for place, number in zip(places.tolist(), numbers.tolist(), strict=True)
        }
        held = set(truth)
        tally, listed = tally_of(plan, population, drawn, run), tally_of(listing, population, drawn, run)
        for name, help_given in helps.items():
            chosen, counts = (listing, listed) if name == "list" else (plan, tally)
            start = process_time()
            found = chosen.discover(counts, false_share=FALSE_SHARE, **help_given)
            scores[name].add(list(found.labels), top, held, process_time() - start)
            scores[name].held.extend(row.low <= truth.get(row.label, 0.0) <= row.high for row in found)
        if run >= REFERENCE_RUNS[epsilon]:
            continue
        reference = PrefixExtending(population.codes[drawn], population.bits, float(epsilon), run)
        start = process_time()
        codes = reference.best(wanted, kept=wanted)
        named = dict(zip(population.codes.tolist(), population.texts, strict=True))
        found_codes = [named.get(code, f"?{code}") for code in codes.tolist()]
        scores["reference"].add(found_codes, top, held, process_time() - start)
    return {name: score for name, score in scores.items() if score.f1}


def found_in_random_texts(users: int, runs: int) -> int:
    """In how many collections any text is found, of users with a random text each."""
    from sunzi.numerics.randomness import ReproducibleSource

    domain, found = words().domain, 0
    plan = make_plan("prefixes", domain, 2)
    for run in range(runs):
        digits = np.random.default_rng([settings.SEED, run]).integers(1, domain.end - 1, (users, domain.width))
        digits[:, -1] = domain.end
        counters = plan.protocol.simulate(digits, ReproducibleSource(run))
        tally = Tally(plan.digest, plan.protocol.tally_layout, users, counters)
        found += len(plan.discover(tally, false_share=FALSE_SHARE)) > 0
    return found


def count_a_list(users: int, others: int) -> tuple[int, float, float]:
    """The number of texts in a list of the words and random texts; the share of their intervals that hold; seconds."""
    population, generator = words(), np.random.default_rng(settings.SEED)
    plan = make_plan("prefixes", population.domain, 2, list_only=True)
    drawn = generator.choice(len(population.texts), users, p=population.shares)
    tally, truth = tally_of(plan, population, drawn, 1), np.bincount(drawn, minlength=len(population.texts)) / users
    with TemporaryDirectory() as folder:
        path = Path(folder) / "list.txt"
        letters = generator.integers(97, 123, (others, LONGEST + 1), dtype=np.uint8)
        letters[:, -1] = ord("\n")
        path.write_bytes("".join(f"{text}\n" for text in population.texts).encode() + letters.tobytes())
        start = process_time()
        estimate = plan.estimate(tally, labels=str(path))
        low, high = estimate.interval(0.95)
        seconds = process_time() - start
    shares = np.concatenate([truth, np.zeros(low.size - truth.size)])
    return low.size, float(np.mean((low <= shares) & (shares <= high))), seconds


def open_domains(scale: float) -> Iterator[Result]:
    """F1 and server time at ε = 1, 2 and 4, each against the reference in the same run."""
    users, runs = settings.users(settings.USERS, scale), settings.rounds(RUNS, scale)
    for population in (words(), strings()):
        for epsilon in EPSILONS:
            scores = measure(population, epsilon, max(users, 20_000), runs)
            yield from _results(population, epsilon, scores)


def _results(population: Population, epsilon: int, scores: dict[str, Score]) -> Iterator[Result]:
    ours, theirs = scores["ours"], scores["reference"]
    seconds, reference = ours.mean("seconds"), theirs.mean("seconds")
    name, about = f"open-domains/{population.name}/{epsilon}", f"{population.name}, ε = {epsilon}"
    details = {
        column: {kind: score.mean(column) for kind, score in scores.items()} for column in ("f1", "true", "false")
    }
    hashing = "prefix extending with local hashing"
    yield Result(
        f"{name}/f1",
        f"F1 of {about}",
        seconds,
        hashing,
        reference,
        ours.mean("f1") / theirs.mean("f1") if theirs.mean("f1") else None,
        F1_RATIO,
        "at least",
        details,
    )
    speed = f"discovery of {about}"
    yield Result(f"{name}/time", speed, seconds, hashing, reference, reference / seconds, SPEEDUP[epsilon], "at least")


def _main(runs: int) -> None:
    from benchmarks.prefix_extending import report_bits

    print("| population | ε | method | bits | true | false | recall | precision | F1 | server |")
    print("| --- | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    held: list[bool] = []
    titles = {"ours": "no help", "prior": "public words", "list": "list of all", "reference": "PEM with local hashing"}
    for population in (words(), strings()):
        for epsilon in EPSILONS:
            plans = [make_plan("prefixes", population.domain, epsilon, list_only=only) for only in (False, True)]
            for kind, score in measure(population, epsilon, settings.USERS, runs).items():
                held += score.held if kind == "ours" else []
                size = report_bits(epsilon) if kind == "reference" else plans[kind == "list"].report_bits
                numbers = f"{score.mean('true'):.1f} | {score.mean('false'):.1f}"
                rates = " | ".join(f"{score.mean(name):.2f}" for name in ("recall", "precision", "f1"))
                print(
                    f"| {population.name} | {epsilon} | {titles[kind]} | {size:.0f} | {numbers} | {rates} | "
                    f"{score.mean('seconds'):.1f} s |",
                    flush=True,
                )

    print(f"intervals found without help: {sum(held):,} of {len(held):,} held")
    print(f"random texts: {found_in_random_texts(settings.USERS, 4 * runs)} of {4 * runs} collections found any")


def _main_list() -> None:
    number, held, seconds = count_a_list(settings.USERS, 10_000_000)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"{number:,} texts in {seconds:.0f} s: {held:.1%} of the intervals held; at most {memory:.1f} GB of memory")


if __name__ == "__main__":
    if sys.argv[1:] == ["list"]:
        _main_list()
    else:
        _main(int(sys.argv[1]) if len(sys.argv) > 1 else RUNS)
