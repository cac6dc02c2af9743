"""Fake reports: how far they can push some target items, and how fake clients make them.

Every attack makes valid messages, so fake reports travel as the same bytes and pass the same checks as honest ones.
Attacks after Cao, Jia and Gong, "Data poisoning attacks to local differential privacy protocols" (2021); the last two
are adaptive: they know the tests of :func:`sunzi.analysis.check_health`.

The push is the sum over the targets of the shift of their estimates. The decoder is linear, so the rows of several
targets add up: a report is worth what its block collects from the summed row (:mod:`sunzi.protocols.decoder_rows`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sunzi import wire
from sunzi._typing import Floats, Integers
from sunzi.client.errors import ParameterError
from sunzi.designs.base import Design
from sunzi.designs.response import BlockResponse
from sunzi.designs.subsets import Subsets
from sunzi.numerics.randomness import ReproducibleSource, uniform_below, word_array
from sunzi.plan import Plan
from sunzi.protocols.base import Messages
from sunzi.protocols.channel import Channel
from sunzi.protocols.decoder_rows import Push, best_division, check_share
from sunzi.wire import EncodedReports

ATTACKS = {
    "maximal-gain": "the one report that pushes the targets most, again and again",
    "input": "the honest client, run on the targets",
    "random": "a uniformly random valid report",
    "balanced": "maximal gain spread over channels by their shares, and evenly over classes and blocks",
    "noiseless": "an honest report of a target, given that it supports the target",
}
"""What fake clients send, by name."""

_CELLS = 1 << 22


class PoisoningReach:
    """How far a share of fake clients can push the summed estimate of some targets, or the mean of a number.

    Parameters
    ----------
    plan: the plan under attack.
    targets: the indices of the targets; of records, their cells in the table that is estimated by default.
    share: the share of fake clients among all clients.

    ``push`` holds the bound and the best division over the channels; ``parts`` is, for every channel, what each of its
    points adds to the targets.

    >>> import sunzi
    >>> reach = PoisoningReach(sunzi.make_plan("grr", 10, 1), targets=[0, 1], share=0.01)
    >>> round(reach.push.bound, 4)
    0.0566
    """

    def __init__(self, plan: Plan, targets: Sequence[int], share: float) -> None:
        size = plan.domain.size
        if not targets or len(set(targets)) != len(targets) or not all(0 <= target < size for target in targets):
            raise ParameterError(f"targets must be distinct items between 0 and {size - 1}, got {list(targets)}")
        check_share(share)
        self.plan, self.targets, self.share = plan, tuple(targets), share
        self.parts = plan.protocol.target_parts(self.targets)
        self.push = self._push()

    def _push(self) -> Push:
        """The best report of every channel, and the best division over the channels."""
        protocol = self.plan.protocol
        pairs = zip(protocol.channels, self.parts, strict=True)
        gains = np.array([channel.largest_gain(part) for channel, part in pairs])
        honest = [self._honest(index, part) for index, part in enumerate(self.parts)]
        shares, expected = best_division(gains - honest, self.share, protocol.shares)
        lowest = [float(part.min()) for part in self.parts]
        bound = self.share * float(np.max((gains - lowest) / protocol.shares))
        return Push(self.targets[0], self.share, expected, bound, tuple(shares.tolist()))

    def _honest(self, channel: int, part: Floats) -> float:
        """What an honest report adds if users hold anything but the first target, equally often."""
        protocol, size = self.plan.protocol, self.plan.domain.size
        own = part[protocol.points_of(channel, np.array(self.targets[:1]))[0]]
        return (size * float(part @ protocol.flat_points(channel)) - float(own)) / (size - 1)


class FakeClients:
    """Fake clients who want the targets of a :class:`PoisoningReach` to look frequent."""

    def __init__(self, reach: PoisoningReach, seed: int | Sequence[int]) -> None:
        self._reach, self._protocol = reach, reach.plan.protocol
        self._targets = np.array(reach.targets, dtype=np.int64)
        self._source = ReproducibleSource(seed)
        self._generator = self._source.generator

    def messages(self, attack: str, count: int) -> Messages:
        """``count`` messages of this attack, as :meth:`Protocol.encode` takes them."""
        if attack not in ATTACKS:
            raise ParameterError(f"attack must be one of {', '.join(ATTACKS)}; got {attack!r}")
        if attack == "input":
            return self._protocol.randomize(self._generator.choice(self._targets, count), self._source)
        if not self._protocol.responses:
            channel = self._protocol.channels[0]
            if not channel.has_independent_bits:
                raise ParameterError(f"{self._protocol.name} reports neither blocks nor bits: use 'input'")
            return self._bits(channel, attack, count)
        return self._blocks(attack, count)

    # --- independent bits

    def _bits(self, channel: Channel, attack: str, count: int) -> NDArray[np.uint8]:
        """Rows of packed bits."""
        size, rates = channel.points, channel.probabilities
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

    # --- blocks of one or several designs

    def _blocks(self, attack: str, count: int) -> Messages:
        """Messages of every channel, joined as the protocol joins them."""
        limits, number = self._protocol.report_layout.payload_limits, len(self._protocol.responses)
        if attack == "random" and len(limits) < number:  # one payload for all channels
            drawn = self._generator.integers(0, limits[0], count)
            return self._protocol.decode(EncodedReports.single(drawn.astype(np.uint64)))
        if number == 1:
            counts = np.array([count])
        elif attack == "maximal-gain":
            counts = _apportioned(count, self._reach.push.shares)
        else:
            counts = self._generator.multinomial(count, self._protocol.shares)
        return self._protocol.join([self._of_channel(i, attack, int(counts[i])) for i in range(number)])

    def _of_channel(self, index: int, attack: str, count: int) -> Integers:
        response, part = self._protocol.responses[index], self._reach.parts[index]
        if attack == "balanced" and len(self._reach.parts) > 1 and not response.design.counts_blocks:
            attack = "maximal-gain"  # the channels are balanced; no test looks at which points a subset names
        points = np.unique(self._protocol.points_of(index, self._targets))
        return self._block(response, part, points, attack, count)

    def _block(self, response: BlockResponse, part: Floats, points: Integers, attack: str, count: int) -> Integers:
        """Messages of one design; ``part`` is the worth of each point, ``points`` are the targets' points."""
        design = response.design
        if attack == "maximal-gain":
            return np.repeat(design.best_message(part)[0][None], count, axis=0)
        if attack == "balanced":
            return self._spread_best(design, part, points, count)
        if attack == "noiseless":
            return self._respond(design, self._generator.choice(points, count), np.full(count, True))
        # A uniform point that is in the block as often as in a random block makes all messages equally likely.
        values = self._generator.integers(0, design.points, count)
        return self._respond(design, values, self._generator.random(count) < design.block_size / design.points)

    def _respond(self, design: Design, values: Integers, truth: NDArray[np.bool_]) -> Integers:
        """A uniform message with, or without, the value."""
        words = word_array(self._source, values.size * design.draw_count).reshape(values.size, design.draw_count)
        return design.respond(values, truth, uniform_below(words, design.draw_bounds, self._source))

    def _spread_best(self, design: Design, part: Floats, points: Integers, count: int) -> Integers:
        """The best messages of every class of blocks, in equal numbers."""
        if not design.counts_blocks:
            return self._filled_subsets(design, points, count)
        sums = design.block_sums(part)
        if design.class_count == 1:
            return self._generator.choice(_best(sums), count)
        chosen = np.empty(count, dtype=np.int64)
        classes = self._generator.integers(0, design.class_count, count)
        rows = sums.reshape(design.class_count, -1)
        for index, row in enumerate(rows):
            mine = classes == index
            chosen[mine] = index * rows.shape[1] + self._generator.choice(_best(row), int(mine.sum()))
        return chosen

    def _filled_subsets(self, design: Design, points: Integers, count: int) -> Integers:
        """All targets, or as many as fit, plus random points."""
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


def _best(sums: Floats) -> NDArray[np.intp]:
    """All places of the maximum, rounding aside."""
    return np.flatnonzero(sums >= sums.max() - 1e-9 * max(1.0, float(np.abs(sums).max())))


def _apportioned(count: int, shares: Sequence[float]) -> Integers:
    """Whole numbers in these proportions that sum to ``count``."""
    exact = np.array(shares) / sum(shares) * count
    whole = np.floor(exact).astype(np.int64)
    order = np.argsort(whole - exact, kind="stable")
    whole[order[: count - int(whole.sum())]] += 1
    return whole


def as_bytes(plan: Plan, messages: Messages) -> bytes:
    """One batch, as clients would send it."""
    encoded = plan.protocol.encode(messages)
    return wire.encode_batch(plan.protocol.report_layout, plan.digest, encoded)
