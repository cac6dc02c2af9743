"""The audit by enumeration: the client run on all words, which gives its exact distribution in integers.

Words of 64 bits are too many to try, words of a few bits are not. The plan's protocol and the client's code are made to
take words of b bits: with the plan's own designs if they are small, otherwise with the smallest designs of their kinds.
All tuples of words are equally likely, so counting reports over all tuples gives the exact distribution of a report. A
rejected word is replaced by fresh ones until one passes, by a rule that looks at this word alone; hence the
distribution is that over the tuples in which every word passes. That other words are rejected is checked by letting the
script run dry.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod

import numpy as np
from numpy.typing import NDArray

from sunzi.analysis.audit_sampling import Finding
from sunzi.analysis.evidence import decode
from sunzi.batch_client import BatchClient
from sunzi.client.errors import PrivacyError, RandomnessError, SunziError
from sunzi.client.thresholds import SCALE, exponential_below
from sunzi.domains.labels import Domain
from sunzi.numerics.randomness import ScriptedSource
from sunzi.plan import Plan
from sunzi.protocols.base import Protocol
from sunzi.protocols.channel import Channel, FirstWord

Words = NDArray[np.uint64]
Report = tuple[int, int]

_MOST_REPORTS = 1 << 17
_WIDEST = 14
_TUPLES_PER_WORD = 20


@dataclass(frozen=True)
class _Narrow:
    """The plan and the audited client's plan, on words of ``bits`` bits."""

    stated: Plan
    audited: Plan
    client: type[BatchClient]
    bits: int


def check_enumeration(plan: Plan, client: BatchClient) -> Finding | None:
    """The exact distribution of reports against the stated one; None if even the smallest design has too many cases."""
    narrow = _narrow(plan, client)
    if narrow is None:
        return None
    try:
        return _compare(narrow)
    except RandomnessError:
        return Finding("enumeration", False, "the client takes more words than its protocol says")
    except SunziError as error:
        return Finding("enumeration", False, f"a report is refused: {error}")


def _narrow(plan: Plan, client: BatchClient) -> _Narrow | None:
    """The plan's own designs, or the smallest of their kinds; with ε = 1 where a smaller one would need wide words."""
    for smallest, epsilon in ((False, plan.epsilon), (True, plan.epsilon), (True, Fraction(1))):
        for bits in range(1, _WIDEST + 1):
            try:
                stated = plan.protocol.narrowed(epsilon, bits, smallest)
                if stated is None:
                    break
                if not _fits(stated, bits):
                    continue
                if _cases(stated, bits) > _MOST_REPORTS:
                    break
                audited = client.plan.protocol.narrowed(epsilon, bits, smallest)
            except PrivacyError:  # no threshold of so few bits is both private and informative
                continue
            if audited is not None:
                return _Narrow(_plan_of(stated), _plan_of(audited), type(client), bits)
    return None


def _plan_of(protocol: Protocol) -> Plan:
    return Plan(protocol, Domain(protocol.domain_size))


def _fits(protocol: Protocol, bits: int) -> bool:
    """Whether every drawn integer has a word."""
    bounds = [bound for channel in protocol.channels for bound in channel.word_bounds]
    first = protocol.first_word
    return max(bounds) <= 1 << bits and (first is None or len(_first_words(first, bits)) == first.outcomes)


def _cases(protocol: Protocol, bits: int) -> int:
    """The number of reports in an enumeration."""
    return sum(_tuples(protocol.channels[index], bits) for _, index in _draws(protocol)) * protocol.domain_size


def _draws(protocol: Protocol) -> list[tuple[int, int]]:
    """Every integer that the first word may give, with the channel that it leads to."""
    first = protocol.first_word
    return [(drawn, protocol.place(drawn, 0)[0]) for drawn in range(1 if first is None else first.outcomes)]


def _first_words(first: FirstWord | None, bits: int) -> dict[int, list[int]]:
    """The words that give each integer; empty if reports have no such word."""
    found: dict[int, list[int]] = {}
    if first is not None:
        for word in range(1 << bits):
            outcome = first.outcome(word, bits)
            if outcome is not None:
                found.setdefault(outcome, []).append(word)
    return found


def _tuples(channel: Channel, bits: int) -> int:
    """Tuples of words in which every word passes: of 2^b words, all but 2^b mod s do."""
    words = 1 << bits
    return prod(words - words % bound if bound else words for bound in channel.word_bounds)


def _axes(channel: Channel, bits: int) -> list[list[int]]:
    """For every word of a report, the words that pass."""
    return [list(passing(bound, bits)) if bound else list(range(1 << bits)) for bound in channel.word_bounds]


def passing(bound: int, bits: int) -> dict[int, int]:
    """The words that Lemire's rule lets pass, and the integer that each of them gives."""
    words = _first_words(FirstWord(bound), bits)
    return {word: integer for integer, listed in words.items() for word in listed}


def _grid(axes: Sequence[Sequence[int]]) -> Words:
    grids = np.meshgrid(*(np.array(axis, dtype=np.uint64) for axis in axes), indexing="ij")
    return np.stack([grid.reshape(-1) for grid in grids], axis=1)


def _reports(narrow: _Narrow, value: int, script: Words, number: int) -> list[Report]:
    """``number`` reports of one value from one script, which they must use up."""
    source = ScriptedSource(script, narrow.bits)
    batch = narrow.client(narrow.audited, source=source).report_indices(np.full(number, value))
    if source.remaining:
        raise SunziError(f"{source.remaining} of {script.size} words are left unused")
    encoded = decode(narrow.stated, batch)
    narrow.stated.protocol.decode(encoded)
    return list(zip(encoded.selectors.tolist(), encoded.in_order(), strict=True))


def _compare(narrow: _Narrow) -> Finding:
    protocol = narrow.stated.protocol
    found = [_counted(narrow, index) for index in range(len(protocol.channels))]
    for index, counted in enumerate(found):
        name = f"channel {index} on {protocol.channels[index].points} points"
        too_likely = _too_likely(counted.tables, narrow.stated)
        if too_likely is not None:
            return Finding("enumeration", False, f"{name}: {too_likely}", True)
        if counted.wrong is not None:
            detail = f"{name}: reports of value {counted.wrong} do not have the stated probabilities"
            return Finding("enumeration", False, detail)
    cases = sum(counted.cases for counted in found)
    for fault in (_wrong_first_word(narrow), _unrejected(narrow)):
        if fault is not None:
            return Finding("enumeration", False, fault)
    setting = f"{protocol.domain_size} values, epsilon {protocol.epsilon}, {narrow.bits}-bit words"
    return Finding("enumeration", True, f"{cases:,} cases ({setting}): reports have exactly the stated probabilities")


def _too_likely(tables: list[Counter[Report]], plan: Plan) -> str | None:
    """P(y|x)·2^96 ≤ P(y|x')·E, in integers: all tables have the same total."""
    odds = exponential_below(plan.epsilon)
    for report in set().union(*tables):
        counts = [table[report] for table in tables]
        if max(counts) * SCALE > min(counts) * odds:
            return f"one report has {max(counts)} cases for one value and {min(counts)} for another"
    return None


@dataclass(frozen=True)
class _Counted:
    """The reports of one channel: how many there are for every value, weighted by the number of first words, and the
    first value whose reports are not as stated.
    """

    tables: list[Counter[Report]]
    cases: int
    wrong: int | None


def _counted(narrow: _Narrow, index: int) -> _Counted:
    """All words after the first one, for every integer that leads to the channel."""
    protocol, bits = narrow.stated.protocol, narrow.bits
    words = _first_words(protocol.first_word, bits)
    grid = _grid(_axes(protocol.channels[index], bits))
    tables: list[Counter[Report]] = [Counter() for _ in range(protocol.domain_size)]
    cases, wrong = 0, None
    for drawn in (drawn for drawn, led in _draws(protocol) if led == index):
        listed = words.get(drawn, [None])
        script = _script(grid, listed[0])
        for value, table in enumerate(tables):
            reports = Counter(_reports(narrow, value, *script))
            cases += script[1]
            if wrong is None and reports != _stated(protocol, index, protocol.place(drawn, value)[1], script[1]):
                wrong = value
            for report, number in reports.items():
                table[report] += number * len(listed)
    return _Counted(tables, cases, wrong)


def _stated(protocol: Protocol, index: int, point: int, tuples: int) -> Counter[Report]:
    """The number of tuples that must give each report."""
    stated: Counter[Report] = Counter()
    for payload, chance in protocol.channels[index].payload_probabilities(point).items():
        cases = chance * tuples
        assert cases.denominator == 1, "all messages that support the value have equally many tuples"
        stated[protocol.wire_report(index, payload)] = int(cases)
    return +stated


def _script(words: Words, first_word: int | None) -> tuple[Words, int]:
    """All words of a batch, which draws the first words of all reports first, and the number of its reports."""
    if first_word is None:
        return words.reshape(-1), len(words)
    first = np.full(len(words), first_word, dtype=np.uint64)
    return np.concatenate([first, words.reshape(-1)]), len(words)


def _wrong_first_word(narrow: _Narrow) -> str | None:
    """All first words that give one integer must do the same, for every value; some tuples of other words show it."""
    protocol, bits = narrow.stated.protocol, narrow.bits
    words = _first_words(protocol.first_word, bits)
    for drawn, index in _draws(protocol) if words else []:
        grid = _grid(_axes(protocol.channels[index], bits))
        some = grid[:: max(1, len(grid) // _TUPLES_PER_WORD)]
        for value in range(protocol.domain_size):
            first, *others = (_reports(narrow, value, *_script(some, word)) for word in words[drawn])
            for word, reports in zip(words[drawn][1:], others, strict=True):
                if reports != first:
                    return f"value {value} takes the first word {word} for another integer than {drawn}"
    return None


def _unrejected(narrow: _Narrow) -> str | None:
    """Whether a word that Lemire's rule rejects is used anyway."""
    for script, word in _with_rejected_words(narrow):
        try:
            _reports(narrow, 0, np.array(script, dtype=np.uint64), 1)
        except RandomnessError:
            continue
        return f"the word {word} of {narrow.bits} bits is used, though it must be rejected"
    return None


def _with_rejected_words(narrow: _Narrow) -> Iterator[tuple[list[int], int]]:
    """Scripts of one report with one rejected word each."""
    protocol, bits = narrow.stated.protocol, narrow.bits
    words = _first_words(protocol.first_word, bits)
    accepted = {word for listed in words.values() for word in listed}
    rejected = next((word for word in range(1 << bits) if accepted and word not in accepted), None)
    if rejected is not None:
        yield [rejected, *(axis[0] for axis in _axes(protocol.channels[0], bits))], rejected
    leading = {index: drawn for drawn, index in _draws(protocol)}
    for index, channel in enumerate(protocol.channels):
        prefix = words[leading[index]][:1] if words else []
        axes = _axes(channel, bits)
        for column, axis in enumerate(axes):
            for word in sorted(set(range(1 << bits)) - set(axis)):
                script = [one[0] for one in axes]
                script[column] = word
                yield prefix + script, word
