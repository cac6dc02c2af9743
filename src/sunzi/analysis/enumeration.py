"""The client run on all words: its exact distribution, in integers only.

Words of 64 bits are too many to go through, words of a few bits are not. The protocol of the plan, and the code of the
client, are made to take words of b bits: the plan's own design if it is small, otherwise the smallest designs of its
kind. Every tuple of words is one of equally many cases, so counting reports over all tuples gives the distribution of a
report exactly. A rejected word is replaced by fresh ones until one passes, by a rule that looks at this word alone;
hence the distribution is that over the tuples in which every word passes, and that the others are rejected is checked
by letting the script run dry.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sunzi.analysis.evidence import decode
from sunzi.analysis.findings import Finding
from sunzi.client import Client
from sunzi.contract import Contract
from sunzi.designs.base import Design
from sunzi.designs.response import BlockResponse
from sunzi.domain import Domain
from sunzi.errors import PrivacyError, RandomnessError, SunziError
from sunzi.numerics.randomness import ScriptedSource
from sunzi.numerics.thresholds import SCALE, exponential_below
from sunzi.plan import Plan
from sunzi.protocols.base import Protocol
from sunzi.protocols.block_response import BlockProtocol
from sunzi.protocols.modular import ModularProtocol
from sunzi.protocols.unary import UnaryProtocol

Words = NDArray[np.uint64]
Report = tuple[int, int]

_MOST_REPORTS = 1 << 17
_WIDEST = 14
_TUPLES_A_SELECTOR = 20
_MINIATURES: dict[str, tuple[tuple[Any, ...], ...]] = {
    "singletons": ((3,), (5,)),
    "subsets": ((5, 2), (3, 2)),
    "cyclotomic": ((7, 2), (5, 4, (0, 2))),  # −1 is no square mod 7, so x + d is not taken for x − d
    "projective": ((2, 3), (3, 2)),
}


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
    for is_own, epsilon in ((True, plan.epsilon), (False, plan.epsilon), (False, Fraction(1))):
        for bits in range(1, _WIDEST + 1):
            try:
                stated = _narrow_protocol(plan.protocol, is_own, epsilon, bits)
                if not _fits(stated, bits):
                    continue
                if _cases(stated, bits) > _MOST_REPORTS:
                    break
                audited = _narrow_protocol(client.plan.protocol, is_own, epsilon, bits)
            except PrivacyError:  # so few bits hold no threshold between telling nothing and telling too much
                continue
            return _Narrow(_plan_of(plan, stated), _plan_of(plan, audited), type(client), bits)
    return None


def _designs(protocol: Protocol) -> list[Design]:
    if isinstance(protocol, BlockProtocol):
        return [protocol.design]
    return [response.design for response in protocol.responses] if isinstance(protocol, ModularProtocol) else []


def _narrow_protocol(protocol: Protocol, is_own: bool, epsilon: Fraction, bits: int) -> Protocol:
    """The same classes on narrow words: with the designs that they have, or with the smallest of their kinds."""
    size = protocol.domain_size
    if isinstance(protocol, UnaryProtocol):
        return type(protocol)(size if is_own else 2, epsilon, word_bits=bits)
    if isinstance(protocol, BlockProtocol):
        own = protocol.design
        design = own if is_own else type(own)(*_MINIATURES[own.kind][0])
        return type(protocol)(min(size, design.points), type(protocol.response)(design, epsilon, word_bits=bits))
    assert isinstance(protocol, ModularProtocol), "evidence_of has refused all others"
    parts = [(response, response.design) for response in protocol.responses]
    if not is_own:
        parts = list(_miniature_parts(protocol.responses))
        size = min(size, 1 + sum(design.points - 1 for _, design in parts))
    return type(protocol)(size, tuple(type(response)(design, epsilon, word_bits=bits) for response, design in parts))


def _miniature_parts(responses: Sequence[BlockResponse]) -> Iterator[tuple[BlockResponse, Design]]:
    """One small design of every kind in use, or two of the only kind, on different moduli."""
    kinds = {response.design.kind: response for response in responses}
    for kind, response in kinds.items():
        for sizes in _MINIATURES[kind][: 2 if len(kinds) == 1 else 1]:
            yield response, type(response.design)(*sizes)


def _plan_of(plan: Plan, protocol: Protocol) -> Plan:
    domain = Domain(protocol.domain_size)
    return Plan(Contract(plan.contract.protocol, protocol.epsilon, domain, {"narrow": "for enumeration"}), protocol)


def _fits(protocol: Protocol, bits: int) -> bool:
    """Whether every drawn integer has a word."""
    bounds = [int(bound) for design in _designs(protocol) for bound in design.draw_bounds]
    if isinstance(protocol, ModularProtocol):
        bounds.append(len(protocol.responses))
    return max(bounds, default=1) <= 1 << bits


def _cases(protocol: Protocol, bits: int) -> int:
    """Reports that an enumeration makes."""
    words = 1 << bits
    if isinstance(protocol, UnaryProtocol):
        return words**protocol.domain_size * protocol.domain_size
    tuples = sum(words * _draws(design, bits) for design in _designs(protocol))
    return tuples * protocol.domain_size


def _draws(design: Design, bits: int) -> int:
    """Tuples of words after the truth word in which every word passes: of 2^b words, all but 2^b mod s do."""
    words = 1 << bits
    return prod(words - words % int(bound) for bound in design.draw_bounds)


def _axes(design: Design, bits: int) -> list[list[int]]:
    """The truth words, and for each bound the words that pass."""
    return [list(range(1 << bits)), *(list(passing(int(bound), bits)) for bound in design.draw_bounds)]


def passing(bound: int, bits: int) -> dict[int, int]:
    """The words that Lemire's rule lets pass, and the integer each of them gives."""
    pairs = [divmod(word * bound, 1 << bits) for word in range(1 << bits)]
    return {word: high for word, (high, low) in enumerate(pairs) if low >= (1 << bits) % bound}


def _grid(axes: Sequence[Sequence[int]]) -> Words:
    grids = np.meshgrid(*(np.array(axis, dtype=np.uint64) for axis in axes), indexing="ij")
    return np.stack([grid.reshape(-1) for grid in grids], axis=1)


def _reports(narrow: _Narrow, value: int, script: Words, number: int) -> list[Report]:
    """So many reports of one value from one script, which they must use up."""
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
                return Finding("enumeration", False, f"{name}: reports of value {value} do not have the stated chances")
    for fault in (_wrong_selector(narrow), _unrejected(narrow)):
        if fault is not None:
            return Finding("enumeration", False, fault)
    setting = f"{protocol.domain_size} values, epsilon {protocol.epsilon}, words of {narrow.bits} bits"
    return Finding("enumeration", True, f"{cases:,} cases ({setting}): reports have exactly the stated chances")


def _too_likely(tables: list[Counter[Report]], plan: Plan) -> str | None:
    """P(y|x)·2^96 ≤ P(y|x')·E, in integers: all tables have the same total."""
    odds = exponential_below(plan.epsilon)
    for report in set().union(*tables):
        counts = [table[report] for table in tables]
        if max(counts) * SCALE > min(counts) * odds:
            return f"one report has {max(counts)} cases for one value and {min(counts)} for another"
    return None


def _tables(narrow: _Narrow) -> Iterator[tuple[str, list[Counter[Report]], list[Counter[Report]]]]:
    """For every part of the protocol its counted reports, and the stated counts, value by value."""
    protocol, bits = narrow.stated.protocol, narrow.bits
    values = range(protocol.domain_size)
    if isinstance(protocol, UnaryProtocol):
        words = _grid([range(1 << bits)] * protocol.domain_size)
        counted = [Counter(_reports(narrow, value, words.reshape(-1), len(words))) for value in values]
        yield "all bits", counted, [_stated_bits(protocol, value, 1 << bits) for value in values]
    elif isinstance(protocol, BlockProtocol):
        words = _grid(_axes(protocol.design, bits))
        counted = [Counter(_reports(narrow, value, words.reshape(-1), len(words))) for value in values]
        yield "all words", counted, [_stated_blocks(narrow, protocol.response, 0, value) for value in values]
    elif isinstance(protocol, ModularProtocol):
        for word, selector in _first_words(protocol, bits).items():
            response = protocol.responses[selector]
            words = _grid(_axes(response.design, bits))
            counted = [Counter(_reports(narrow, value, *_joint_script(word, words))) for value in values]
            stated = [_stated_blocks(narrow, response, selector, value) for value in values]
            yield f"modulus {response.design.points}", counted, stated


def _first_words(protocol: ModularProtocol, bits: int) -> dict[int, int]:
    """The first word of every selector."""
    first: dict[int, int] = {}
    for word, selector in passing(len(protocol.responses), bits).items():
        first.setdefault(selector, word)
    return {word: selector for selector, word in first.items()}


def _joint_script(selector_word: int, words: Words) -> tuple[Words, int]:
    """A batch draws all its selectors first."""
    first = np.full(len(words), selector_word, dtype=np.uint64)
    return np.concatenate([first, words.reshape(-1)]), len(words)


def _wrong_selector(narrow: _Narrow) -> str | None:
    """All words of one selector must do the same, for every value; some tuples of the other words will show it."""
    protocol, bits = narrow.stated.protocol, narrow.bits
    if not isinstance(protocol, ModularProtocol):
        return None
    first = {selector: word for word, selector in _first_words(protocol, bits).items()}
    for word, selector in passing(len(protocol.responses), bits).items():
        words = _grid(_axes(protocol.responses[selector].design, bits))
        some = words[:: max(1, len(words) // _TUPLES_A_SELECTOR)]
        for value in range(protocol.domain_size):
            due = _reports(narrow, value, *_joint_script(first[selector], some))
            if _reports(narrow, value, *_joint_script(word, some)) != due:
                return f"value {value} takes the word {word} for another selector than {selector}"
    return None


def _stated_bits(protocol: UnaryProtocol, value: int, words: int) -> Counter[Report]:
    stated: Counter[Report] = Counter()
    for bits in product((0, 1), repeat=protocol.domain_size):
        cases = 1
        for place, bit in enumerate(bits):
            threshold = protocol.true_threshold if place == value else protocol.false_threshold
            cases *= threshold if bit else words - threshold
        stated[0, sum(bit << place for place, bit in enumerate(bits))] = cases
    return +stated


def _stated_blocks(narrow: _Narrow, response: BlockResponse, selector: int, value: int) -> Counter[Report]:
    """T·R/(messages with the point) cases for a message with it, (2^b − T)·R/(the others) without, R the draws."""
    design, protocol = response.design, narrow.stated.protocol
    draws = _draws(design, narrow.bits)
    payloads = np.arange(design.message_count, dtype=np.uint64)
    inside = design.contains(design.decode(payloads), np.full(payloads.size, value % design.points))
    holding = int(np.count_nonzero(inside))
    truths, truth_rest = divmod(response.threshold * draws, holding)
    lies, lie_rest = divmod(((1 << narrow.bits) - response.threshold) * draws, payloads.size - holding)
    assert truth_rest == lie_rest == 0, "every block with the value, and every one without, has equally many draws"
    first, offset = selector, 0
    if isinstance(protocol, ModularProtocol) and len(protocol.report_layout.payload_bits) == 1:
        first, offset = 0, sum(r.design.message_count for r in protocol.responses[:selector])
    return +Counter({(first, offset + y): truths if inside[y] else lies for y in range(payloads.size)})


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
    """Scripts of one report with one such word each."""
    protocol, bits = narrow.stated.protocol, narrow.bits
    prefixes: list[tuple[list[int], Design]] = [([], design) for design in _designs(protocol)]
    if isinstance(protocol, ModularProtocol):
        selectors = passing(len(protocol.responses), bits)
        by_selector = {selector: word for word, selector in selectors.items()}
        prefixes = [([by_selector[index]], design) for index, (_, design) in enumerate(prefixes)]
        rejected = next((word for word in range(1 << bits) if word not in selectors), None)
        if rejected is not None:
            yield [rejected, *(axis[0] for axis in _axes(prefixes[0][1], bits))], rejected
    for prefix, design in prefixes:
        axes = _axes(design, bits)
        for column, axis in enumerate(axes):
            for word in sorted(set(range(1 << bits)) - set(axis)):
                script = [one[0] for one in axes]
                script[column] = word
                yield prefix + script, word
