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
from sunzi.client import Client
from sunzi.contract import Contract
from sunzi.domain import Domain
from sunzi.errors import PrivacyError, RandomnessError, SunziError
from sunzi.numerics.randomness import ScriptedSource
from sunzi.numerics.thresholds import SCALE, exponential_below
from sunzi.plan import Plan
from sunzi.protocols.base import Protocol
from sunzi.protocols.channel import Channel

Words = NDArray[np.uint64]
Report = tuple[int, int]

_MOST_REPORTS = 1 << 17
_WIDEST = 14
_TUPLES_PER_SELECTOR = 20


@dataclass(frozen=True)
class _Narrow:
    """The plan and the audited client's plan, on words of ``bits`` bits."""

    stated: Plan
    audited: Plan
    client: type[Client]
    bits: int


def check_enumeration(plan: Plan, client: Client) -> Finding | None:
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


def _narrow(plan: Plan, client: Client) -> _Narrow | None:
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
                return _Narrow(_plan_of(plan, stated), _plan_of(plan, audited), type(client), bits)
    return None


def _plan_of(plan: Plan, protocol: Protocol) -> Plan:
    domain = Domain(protocol.domain_size)
    return Plan(Contract(plan.contract.protocol, protocol.epsilon, domain, {"narrow": "for enumeration"}), protocol)


def _fits(protocol: Protocol, bits: int) -> bool:
    """Whether every drawn integer has a word."""
    bounds = [bound for channel in protocol.channels for bound in channel.word_bounds]
    return max(*bounds, len(protocol.channels)) <= 1 << bits


def _cases(protocol: Protocol, bits: int) -> int:
    """The number of reports in an enumeration."""
    return sum(_tuples(channel, bits) for channel in protocol.channels) * protocol.domain_size


def _tuples(channel: Channel, bits: int) -> int:
    """Tuples of words in which every word passes: of 2^b words, all but 2^b mod s do."""
    words = 1 << bits
    return prod(words - words % bound if bound else words for bound in channel.word_bounds)


def _axes(channel: Channel, bits: int) -> list[list[int]]:
    """For every word of a report, the words that pass."""
    return [list(passing(bound, bits)) if bound else list(range(1 << bits)) for bound in channel.word_bounds]


def passing(bound: int, bits: int) -> dict[int, int]:
    """The words that Lemire's rule lets pass, and the integer that each of them gives."""
    pairs = [divmod(word * bound, 1 << bits) for word in range(1 << bits)]
    return {word: high for word, (high, low) in enumerate(pairs) if low >= (1 << bits) % bound}


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
    cases = 0
    for name, tables, stated in _tables(narrow):
        cases += sum(sum(table.values()) for table in tables)
        too_likely = _too_likely(tables, narrow.stated)
        if too_likely is not None:
            return Finding("enumeration", False, f"{name}: {too_likely}", True)
        for value, (table, due) in enumerate(zip(tables, stated, strict=True)):
            if table != due:
                detail = f"{name}: reports of value {value} do not have the stated probabilities"
                return Finding("enumeration", False, detail)
    for fault in (_wrong_selector(narrow), _unrejected(narrow)):
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


def _tables(narrow: _Narrow) -> Iterator[tuple[str, list[Counter[Report]], list[Counter[Report]]]]:
    """For every channel the counted reports and the stated counts, value by value."""
    protocol, bits = narrow.stated.protocol, narrow.bits
    values = range(protocol.domain_size)
    for index, channel in enumerate(protocol.channels):
        script = _script(_grid(_axes(channel, bits)), _selector_words(protocol, bits).get(index))
        counted = [Counter(_reports(narrow, value, *script)) for value in values]
        stated = [_stated(protocol, index, value % channel.points, script[1]) for value in values]
        yield f"channel {index} on {channel.points} points", counted, stated


def _stated(protocol: Protocol, index: int, point: int, tuples: int) -> Counter[Report]:
    """The number of tuples that must give each report."""
    stated: Counter[Report] = Counter()
    for payload, chance in protocol.channels[index].payload_probabilities(point).items():
        cases = chance * tuples
        assert cases.denominator == 1, "all messages that support the value have equally many tuples"
        stated[protocol.wire_report(index, payload)] = int(cases)
    return +stated


def _selector_words(protocol: Protocol, bits: int) -> dict[int, int]:
    """The first word of every selector; empty if reports have none."""
    first: dict[int, int] = {}
    if protocol.draws_selector:
        for word, selector in passing(len(protocol.channels), bits).items():
            first.setdefault(selector, word)
    return first


def _script(words: Words, selector_word: int | None) -> tuple[Words, int]:
    """All words of a batch, which draws all its selectors first, and the number of its reports."""
    if selector_word is None:
        return words.reshape(-1), len(words)
    first = np.full(len(words), selector_word, dtype=np.uint64)
    return np.concatenate([first, words.reshape(-1)]), len(words)


def _wrong_selector(narrow: _Narrow) -> str | None:
    """All words of one selector must do the same, for every value; some tuples of the other words show it."""
    protocol, bits = narrow.stated.protocol, narrow.bits
    first = _selector_words(protocol, bits)
    if not first:
        return None
    for word, selector in passing(len(protocol.channels), bits).items():
        words = _grid(_axes(protocol.channels[selector], bits))
        some = words[:: max(1, len(words) // _TUPLES_PER_SELECTOR)]
        for value in range(protocol.domain_size):
            due = _reports(narrow, value, *_script(some, first[selector]))
            if _reports(narrow, value, *_script(some, word)) != due:
                return f"value {value} takes the word {word} for another selector than {selector}"
    return None


def _unrejected(narrow: _Narrow) -> str | None:
    """Whether a word that Lemire's rule rejects is used all the same."""
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
    selectors = _selector_words(protocol, bits)
    if selectors:
        accepted = passing(len(protocol.channels), bits)
        rejected = next((word for word in range(1 << bits) if word not in accepted), None)
        if rejected is not None:
            yield [rejected, *(axis[0] for axis in _axes(protocol.channels[0], bits))], rejected
    for index, channel in enumerate(protocol.channels):
        prefix = [selectors[index]] if selectors else []
        axes = _axes(channel, bits)
        for column, axis in enumerate(axes):
            for word in sorted(set(range(1 << bits)) - set(axis)):
                script = [one[0] for one in axes]
                script[column] = word
                yield prefix + script, word
