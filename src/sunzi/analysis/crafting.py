"""Reports that fake clients send: valid messages of a plan, made to push some target items, or made at random.

What an attack returns is what :meth:`Protocol.encode` takes, so that fake reports travel as the same bytes and pass the
same checks as honest ones. Attacks after Cao, Jia and Gong, "Data poisoning attacks to local differential privacy
protocols" (2021); the last two are adaptive: they know what is tested (:mod:`sunzi.analysis.health`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sunzi import wire
from sunzi._typing import Floats, Integers
from sunzi.analysis.reach import Reach
from sunzi.designs.base import Design
from sunzi.designs.cyclotomic import Cyclotomic
from sunzi.designs.response import BlockResponse
from sunzi.designs.subsets import Subsets
from sunzi.errors import ParameterError
from sunzi.numerics.randomness import ReproducibleSource, uniform_below
from sunzi.plan import Plan
from sunzi.protocols.base import Messages
from sunzi.protocols.modular import CompactModularSubsetSelection, ModularMessages, ModularProtocol
from sunzi.protocols.unary import UnaryProtocol

ATTACKS = {
    "maximal-gain": "the one report that pushes the targets most, again and again",
    "input": "the honest client, run on the targets",
    "random": "any valid report, all being equally likely",
    "balanced": "maximal gain spread evenly over moduli, classes and blocks, so that no balance is disturbed",
    "noiseless": "the honest client's report of a target when it happens to tell the truth, noise included",
}
"""What fake clients send."""

_CELLS = 1 << 22


class Crafter:
    """Fake clients of one plan who want some targets to look frequent."""

    def __init__(self, reach: Reach, seed: int | Sequence[int]) -> None:
        self._reach, self._protocol = reach, reach.plan.protocol
        self._targets = np.array(reach.targets, dtype=np.int64)
        self._source = ReproducibleSource(seed)
        self._generator = self._source.generator

    def messages(self, attack: str, count: int) -> Messages:
        """So many messages of this attack."""
        if attack not in ATTACKS:
            raise ParameterError(f"attack must be one of {', '.join(ATTACKS)}; got {attack!r}")
        if attack == "input":
            return self._protocol.randomize(self._generator.choice(self._targets, count), self._source)
        if isinstance(self._protocol, UnaryProtocol):
            return self._bits(self._protocol, attack, count)
        if isinstance(self._protocol, ModularProtocol):
            return self._modular(self._protocol, attack, count)
        return self._block(self._reach.responses[0], self._reach.parts[0], self._targets, attack, count)

    # --- unary --------------------------------------------------------------------------------------------------------

    def _bits(self, protocol: UnaryProtocol, attack: str, count: int) -> NDArray[np.uint8]:
        """Rows of packed bits."""
        size, rates = protocol.domain_size, protocol.probabilities
        ones = rates.true + (size - 1) * rates.false
        number = self._targets.size
        others = {
            "maximal-gain": 0.0,
            "random": 0.5,
            "balanced": min(max((ones - number) / max(size - number, 1), 0.0), 1.0),
            "noiseless": rates.false,
        }[attack]
        rows = max(1, _CELLS // size)
        packed = []
        for start in range(0, count, rows):
            bits = self._generator.random((min(rows, count - start), size), dtype=np.float32) < others
            if attack == "noiseless":
                bits[np.arange(len(bits)), self._generator.choice(self._targets, len(bits))] = True
            elif attack != "random":
                bits[:, self._targets] = True
            packed.append(np.packbits(bits, axis=1, bitorder="little"))
        return np.concatenate(packed) if packed else np.empty((0, -(-size // 8)), dtype=np.uint8)

    # --- one design ---------------------------------------------------------------------------------------------------

    def _block(self, response: BlockResponse, part: Floats, points: Integers, attack: str, count: int) -> Integers:
        """Messages of one design; ``part`` says what each point is worth, ``points`` are those of the targets."""
        design = response.design
        if attack == "maximal-gain":
            return np.repeat(design.best_message(part)[0][None], count, axis=0)
        if attack == "balanced":
            return self._spread_best(design, part, points, count)
        if attack == "noiseless":
            return self._respond(design, self._generator.choice(points, count), np.full(count, True))
        # A uniform point, told as often as blocks contain it, makes every message equally likely.
        values = self._generator.integers(0, design.points, count)
        return self._respond(design, values, self._generator.random(count) < design.block_size / design.points)

    def _respond(self, design: Design, values: Integers, truth: NDArray[np.bool_]) -> Integers:
        """A uniform message with, or without, the value."""
        words = self._source.words(values.size * design.draw_count).reshape(values.size, design.draw_count)
        return design.respond(values, truth, uniform_below(words, design.draw_bounds, self._source))

    def _spread_best(self, design: Design, part: Floats, points: Integers, count: int) -> Integers:
        """The best messages in equal numbers: of every class of blocks, if there are classes."""
        if not design.counts_blocks:
            return self._filled_subsets(design, points, count)
        sums = design.block_sums(part)
        if not isinstance(design, Cyclotomic):
            return self._generator.choice(_best(sums), count)
        chosen = np.empty(count, dtype=np.int64)
        classes = self._generator.integers(0, design.classes, count)
        for index, row in enumerate(sums.reshape(design.classes, design.points)):
            mine = classes == index
            chosen[mine] = index * design.points + self._generator.choice(_best(row), int(mine.sum()))
        return chosen

    def _filled_subsets(self, design: Design, points: Integers, count: int) -> Integers:
        """All targets, or as many as fit, filled up with random points."""
        number = min(points.size, design.block_size)
        rest = np.setdiff1d(np.arange(design.points), points)
        kept = self._generator.permuted(np.tile(points, (count, 1)), axis=1)[:, :number]
        filling = design.block_size - number
        if not filling:
            return np.sort(kept, axis=1)
        if filling == rest.size:
            others = np.tile(rest, (count, 1))
        else:
            smaller = Subsets(rest.size, filling)
            truth = self._generator.random(count) < filling / rest.size
            others = rest[self._respond(smaller, self._generator.integers(0, rest.size, count), truth)]
        return np.sort(np.concatenate([kept, others], axis=1), axis=1)

    # --- moduli -------------------------------------------------------------------------------------------------------

    def _modular(self, protocol: ModularProtocol, attack: str, count: int) -> Messages:
        """Messages of every modulus, joined as the protocol joins them."""
        sizes = [response.design.message_count for response in protocol.responses]
        if attack == "random" and isinstance(protocol, CompactModularSubsetSelection):
            return self._generator.integers(0, sum(sizes), count)
        number = len(protocol.responses)
        if attack == "maximal-gain":
            counts = _apportioned(count, self._reach.push.shares)
        else:
            counts = self._generator.multinomial(count, np.full(number, 1 / number))
        parts = tuple(self._of_modulus(protocol, index, attack, int(counts[index])) for index in range(number))
        if isinstance(protocol, CompactModularSubsetSelection):
            offsets = np.concatenate([[0], np.cumsum(sizes)])
            return np.concatenate([part + offset for part, offset in zip(parts, offsets, strict=False)])
        return ModularMessages(np.repeat(np.arange(number), counts), parts)

    def _of_modulus(self, protocol: ModularProtocol, index: int, attack: str, count: int) -> Integers:
        response, part = protocol.responses[index], self._reach.parts[index]
        if attack == "balanced" and not response.design.counts_blocks:
            attack = "maximal-gain"  # the moduli are balanced; which points a subset names is nobody's balance
        return self._block(response, part, np.unique(self._targets % protocol.moduli[index]), attack, count)


def _best(sums: Floats) -> NDArray[np.intp]:
    """All places of the maximum, rounding aside."""
    return np.flatnonzero(sums >= sums.max() - 1e-9 * max(1.0, float(np.abs(sums).max())))


def _apportioned(count: int, shares: Sequence[float]) -> Integers:
    """Whole numbers in these proportions that add up to ``count``."""
    exact = np.array(shares) / sum(shares) * count
    whole = np.floor(exact).astype(np.int64)
    order = np.argsort(whole - exact, kind="stable")
    whole[order[: count - int(whole.sum())]] += 1
    return whole


def as_bytes(plan: Plan, messages: Messages) -> bytes:
    """One batch, as clients would send it."""
    encoded = plan.protocol.encode(messages)
    return wire.encode_batch(plan.protocol.report_layout, plan.contract.fingerprint, encoded)
