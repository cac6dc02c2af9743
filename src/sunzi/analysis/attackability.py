"""Attackability under any prior, by formula: Σ_y max_x π(x)·P(y|x), the success of the best attacker.

See docs/mathematics.md §4.

P(y|x) takes two values for each message y, so the best guess is either the likeliest value of all or the likeliest one
that y supports. With the values in the order of their chances, all that matters of a message is the place of the first
value that it supports, and how many messages have their first support at each place:

- subsets, single points among them: the i-th place with probability w/(v−i)·Π_{t<i}(v−w−t)/(v−t);
- unary: q(1−q)^i under the measure in which all bits are false;
- other designs: by asking every message, place by place.

A modular protocol's block sees residues; the chance of a residue is that of its likeliest value, since that is the one
to guess.
"""

from __future__ import annotations

import numpy as np

from sunzi._typing import Floats, Integers, Progress
from sunzi.analysis.evidence import BlockEvidence, Evidence, block_odds, unary_odds
from sunzi.designs.response import BlockResponse
from sunzi.designs.singletons import Singletons
from sunzi.designs.subsets import Subsets
from sunzi.errors import ParameterError
from sunzi.plan import Plan
from sunzi.protocols.block_response import BlockProtocol
from sunzi.protocols.modular import ModularProtocol
from sunzi.protocols.unary import UnaryProtocol

_MOST_QUESTIONS = 1 << 28


def attackability(plan: Plan, chances: Floats) -> float | None:
    """How often the best attacker is right who believes in these chances, and for whom they are true.

    Exact; None where it would take listing too many messages of a large compact design.
    """
    protocol = plan.protocol
    if np.all(chances == chances[0]):
        return protocol.attackability
    if isinstance(protocol, BlockProtocol):
        return _of_block(protocol.response, chances)
    if isinstance(protocol, UnaryProtocol):
        return _of_unary(protocol, chances)
    if isinstance(protocol, ModularProtocol):
        parts = [_of_block(response, _residue_chances(chances, response)) for response in protocol.responses]
        known = [part for part in parts if part is not None]
        return sum(known) / len(parts) if len(known) == len(parts) else None
    raise ParameterError(f"there is no formula for the attackability of {protocol.name} under a given prior")


def _residue_chances(chances: Floats, response: BlockResponse) -> Floats:
    """The largest chance in each residue class."""
    points = response.design.points
    padded = np.zeros(-(-chances.size // points) * points)
    padded[: chances.size] = chances
    return np.asarray(padded.reshape(-1, points).max(axis=0)[: min(points, chances.size)])


def _of_block(response: BlockResponse, chances: Floats) -> float | None:
    """(1−p)·v/(v−w)·Σ_i (share of messages whose first support is i)·max(π_0, odds·π_i)."""
    design, odds = response.design, block_odds(response)
    order = np.argsort(-chances, kind="stable")
    ranked = chances[order]
    if isinstance(design, Subsets | Singletons):
        shares = _shares_of_subsets(design.points, design.block_size, order.size)
    else:
        # Past the place where even a supported value is less likely than the first one, the guess is the first one.
        places = max(1, int(np.count_nonzero(odds * ranked > ranked[0])))
        if design.message_count * min(places, design.points / design.block_size) > _MOST_QUESTIONS:
            return None
        messages = np.arange(design.message_count, dtype=np.int64)
        first = first_supports(BlockEvidence(response, messages), order[:places])
        counts = np.bincount(np.where(first < 0, places, first), minlength=places + 1)
        shares = counts[:places] / design.message_count
    outside = float((1 - response.inclusion) * design.points / (design.points - design.block_size))
    gained = np.maximum(ranked[0], odds * ranked[: shares.size])
    return outside * float(shares @ gained + (1 - shares.sum()) * ranked[0])


def _shares_of_subsets(points: int, block_size: int, places: int) -> Floats:
    place = np.arange(places, dtype=np.float64)
    missed = np.maximum((points - block_size - place) / (points - place), 0.0)
    none_before = np.concatenate([[1.0], np.cumprod(missed)[:-1]])
    return np.asarray(none_before * np.minimum(block_size / (points - place), 1.0))


def _of_unary(protocol: UnaryProtocol, chances: Floats) -> float:
    """Σ_i q(1−q)^i·max(π_0·(1−p)/(1−q), π_i·p/q), and all bits 0."""
    true, false = protocol.probabilities.true, protocol.probabilities.false
    ranked = np.sort(chances)[::-1]
    missed = (1 - true) / (1 - false)
    weights = false * (1 - false) ** np.arange(ranked.size)
    gained = np.maximum(ranked[0] * missed, ranked * missed * unary_odds(protocol))
    return float(weights @ gained + (1 - false) ** ranked.size * ranked[0] * missed)


def first_supports(evidence: Evidence, order: Integers, progress: Progress | None = None) -> Integers:
    """For each report the place in ``order`` of the first value that it supports, or −1."""
    found = np.full(len(evidence), -1, dtype=np.int64)
    rows = np.arange(len(evidence))
    rest = evidence
    for place, value in enumerate(order.tolist()):
        supported = rest.supports(np.full(rows.size, value, dtype=np.int64))
        found[rows[supported]] = place
        open_rows = np.flatnonzero(~supported)
        rows, rest = rows[open_rows], rest.take(open_rows)
        if not rows.size:
            break
        if progress is not None:
            progress(1 - rows.size / len(evidence))
    return found
