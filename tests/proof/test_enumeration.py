"""The shipped randomiser, run on every tuple of narrow words: its exact output distribution, in integers only.

A word of b bits (3 to 9 here, 64 in production) has 2^b equally likely values, so running the trusted client on all
tuples of words gives the exact distribution of a report. (The vectorised side makes the same reports of the same words;
where there are too many tuples for the client, it alone runs all of them.) Only rejection needs an argument. Whether a
word is rejected depends on that word alone, and it is replaced by fresh words until one is accepted; so the word
finally used is uniform over the accepted words, independent of all others. The distribution of a report is therefore
its distribution over the tuples in which every word is accepted at once. A script with exactly the words that a report
needs runs out (RandomnessError) if and only if some word is rejected: those tuples are left out, the others are
counted.
"""

from collections import Counter
from fractions import Fraction
from itertools import product
from math import comb

import numpy as np
import pytest
from enumeration import SCALE, check_ratios, passing, passing_tuples, shipped_reports, trusted

from sunzi.client.designs import subsets
from sunzi.client.errors import ParameterError, RandomnessError
from sunzi.client.reports import byte_length
from sunzi.client.thresholds import exponential_below
from sunzi.designs.cyclotomic import Cyclotomic
from sunzi.designs.projective import Projective
from sunzi.designs.response import BlockResponse
from sunzi.designs.singletons import Singletons
from sunzi.designs.subsets import Subsets
from sunzi.numerics.randomness import ScriptedSource
from sunzi.protocols.block_protocols import (
    CompactSubsetSelection,
    GeneralizedRandomizedResponse,
    ProjectiveGeometryResponse,
    SubsetSelection,
)
from sunzi.protocols.modular import CompactModularSubsetSelection, ModularSubsetSelection
from sunzi.protocols.registry import catalogue
from sunzi.protocols.unary import OptimalUnaryEncoding, Rappor


def block(protocol, domain_size, design, epsilon, bits):
    return protocol(domain_size, BlockResponse(design, Fraction(epsilon), word_bits=bits))


def modular(protocol, domain_size, designs, epsilon, bits):
    return protocol(domain_size, [BlockResponse(design, Fraction(epsilon), word_bits=bits) for design in designs])


BLOCK_PROTOCOLS = {
    "grr": lambda: block(GeneralizedRandomizedResponse, 7, Singletons(7), 1, 6),
    "grr, two values": lambda: block(GeneralizedRandomizedResponse, 2, Singletons(2), "1/2", 6),
    "grr, high epsilon": lambda: block(GeneralizedRandomizedResponse, 5, Singletons(5), 3, 5),
    "grr, many values": lambda: block(GeneralizedRandomizedResponse, 61, Singletons(61), 3, 6),
    "ss": lambda: block(SubsetSelection, 7, Subsets(7, 2), 1, 6),
    "ss, all but one": lambda: block(SubsetSelection, 3, Subsets(3, 2), 1, 3),
    "ss, one point": lambda: block(SubsetSelection, 5, Singletons(5), 1, 5),
    "ss, bitmaps": lambda: block(SubsetSelection, 6, Subsets(6, 2, "bitmap"), "3/2", 6),
    "ss-compact": lambda: block(CompactSubsetSelection, 7, Cyclotomic(7, 3), 1, 3),
    "ss-compact, truncated": lambda: block(CompactSubsetSelection, 5, Cyclotomic(7, 2), 1, 3),
    "ss-compact, -1 not in H": lambda: block(CompactSubsetSelection, 7, Cyclotomic(7, 2, (1,)), 1, 3),
    "ss-compact with 0": lambda: block(CompactSubsetSelection, 7, Cyclotomic(7, 3, with_zero=True), 1, 3),
    "ss-compact, a union": lambda: block(CompactSubsetSelection, 11, Cyclotomic(11, 5, (0, 1)), 1, 3),
    "ss-compact, repeated blocks": lambda: block(CompactSubsetSelection, 5, Cyclotomic(5, 4, (0, 2)), 1, 3),
    "ss-compact, a union with 0": lambda: block(CompactSubsetSelection, 6, Cyclotomic(7, 6, (3, 0), True, 5), 1, 3),
    "pgr, 2": lambda: block(ProjectiveGeometryResponse, 7, Projective(2, 3), 1, 3),
    "pgr, 2, truncated": lambda: block(ProjectiveGeometryResponse, 9, Projective(2, 4), 1, 3),
    "pgr, 3": lambda: block(ProjectiveGeometryResponse, 13, Projective(3, 3), 1, 4),
    "pgr, 4": lambda: block(ProjectiveGeometryResponse, 21, Projective(4, 3), 1, 4),
    "pgr, 8": lambda: block(ProjectiveGeometryResponse, 9, Projective(8, 2), 2, 3),
    "pgr, 9": lambda: block(ProjectiveGeometryResponse, 10, Projective(9, 2), 2, 4),
}
# Too many tuples to run one by one; a batch takes them all at once.
LARGE_BLOCK_PROTOCOLS = {
    "ss": lambda: block(SubsetSelection, 13, Subsets(13, 2), "3/2", 9),
    "ss, half of the points": lambda: block(SubsetSelection, 6, Subsets(6, 3), 1, 8),
    "ss-compact": lambda: block(CompactSubsetSelection, 13, Cyclotomic(13, 4), 1, 4),
    "ss-compact, a union": lambda: block(CompactSubsetSelection, 12, Cyclotomic(13, 6, (4, 1)), 1, 4),
    "pgr, 5": lambda: block(ProjectiveGeometryResponse, 31, Projective(5, 3), "3/2", 5),
    "pgr, 3 in four dimensions": lambda: block(ProjectiveGeometryResponse, 40, Projective(3, 4), 1, 5),
}
UNARY_PROTOCOLS = {
    "rappor": lambda: Rappor(4, Fraction(2), word_bits=3),
    "rappor, three values": lambda: Rappor(3, Fraction(1), word_bits=4),
    "oue": lambda: OptimalUnaryEncoding(4, Fraction(1), word_bits=3),
    "oue, two values": lambda: OptimalUnaryEncoding(2, Fraction(5, 2), word_bits=6),
}
MODULAR_PROTOCOLS = {
    "mss": lambda: modular(ModularSubsetSelection, 9, [Subsets(5, 2), Singletons(3), Singletons(7)], 1, 5),
    "mss, a modulus above the domain": lambda: modular(ModularSubsetSelection, 5, [Subsets(7, 2), Subsets(3, 2)], 1, 6),
    "mss-compact": lambda: modular(
        CompactModularSubsetSelection, 8, [Cyclotomic(5, 4, (0, 1)), Cyclotomic(7, 3), Singletons(3)], 1, 3
    ),
    "mss-compact, one modulus": lambda: modular(CompactModularSubsetSelection, 7, [Cyclotomic(7, 2)], 1, 3),
}


def test_every_protocol_of_the_catalogue_is_enumerated():
    made = [case() for cases in (BLOCK_PROTOCOLS, UNARY_PROTOCOLS, MODULAR_PROTOCOLS) for case in cases.values()]
    assert {protocol.name for protocol in made} == set(catalogue())


def run(protocol, value, words, bits):
    """The report of one value as (selector, payload), or None if a word is rejected."""
    try:
        (report,), left = shipped_reports(protocol, [value], words, bits)
    except RandomnessError:
        return None
    assert left == 0
    return report


def enumerate_singles(protocol, response, value):
    """The report of every accepted tuple of words, run one by one."""
    bits, length = response.word_bits, response.words_per_report
    given = {words: run(protocol, value, words, bits) for words in product(range(1 << bits), repeat=length)}
    accepted = {words: report for words, report in given.items() if report is not None}
    assert set(accepted) == {tuple(row) for row in passing_tuples(response.design, bits).tolist()}
    return accepted


def enumerate_batch(protocol, response, value):
    """All accepted tuples and their reports, made in one call."""
    words = passing_tuples(response.design, response.word_bits)
    reports, left = shipped_reports(protocol, np.full(len(words), value), words, response.word_bits)
    assert left == 0
    return words, reports


def blocks_of(design, payloads):
    """For each payload the set of points that its message's block contains."""
    if design.payload_limit is None:
        length = byte_length(design.payload_bits)
        encoded = np.array([list(payload.to_bytes(length, "little")) for payload in payloads], dtype=np.uint8)
    else:
        encoded = np.array(payloads, dtype=np.uint64)
    messages = design.decode(encoded)
    columns = [design.contains(messages, np.full(len(payloads), point)) for point in range(design.points)]
    return [frozenset(np.flatnonzero(row).tolist()) for row in np.column_stack(columns)]


def check_block_distribution(response, tables, points):
    """Each table has the design's distribution: uniform over the blocks with x, and uniform over those without x."""
    design, inside_and_outside = response.design, response.message_probabilities()
    payloads = sorted(set().union(*tables))
    expected_messages = comb(design.points, design.block_size) if design.kind == "subsets" else design.message_count
    assert len(payloads) == expected_messages
    blocks = blocks_of(design, payloads)
    assert {len(block) for block in blocks} == {design.block_size}
    truth = Fraction(response.threshold, 1 << response.word_bits)
    other = (design.block_size - truth) / (design.points - 1)
    for table, point in zip(tables, points, strict=True):
        total = sum(table.values())
        inside, outside = inside_and_outside
        shares = [Fraction(table[payload], total) for payload in payloads]
        assert shares == [inside if point in block else outside for block in blocks]
        for candidate in range(design.points):
            support = sum(
                (share for share, block in zip(shares, blocks, strict=True) if candidate in block), Fraction(0)
            )
            assert support == (truth if candidate == point else other)
    stated = (response.probabilities.true, response.probabilities.false, response.probabilities.gap)
    assert stated == (float(truth), float(other), float(truth - other))


@pytest.mark.parametrize("name", BLOCK_PROTOCOLS)
def test_block_protocols(name):
    """Every value in a batch of all tuples; the last value, and the first where that is cheap, also one by one."""
    protocol = BLOCK_PROTOCOLS[name]()
    tables = []
    for value in range(protocol.domain_size):
        words, reports = enumerate_batch(protocol, protocol.response, value)
        assert {selector for selector, _ in reports} == {0}
        tables.append(Counter(payload for _, payload in reports))
        if value == protocol.domain_size - 1 or (value == 0 and len(words) < 1000):
            accepted = enumerate_singles(protocol, protocol.response, value)
            assert reports == [accepted[tuple(row)] for row in words.tolist()]
    check_ratios(tables, protocol.epsilon)
    check_block_distribution(protocol.response, tables, range(protocol.domain_size))


@pytest.mark.parametrize("name", LARGE_BLOCK_PROTOCOLS)
def test_larger_block_protocols_in_one_batch_a_value(name):
    check_in_batches(LARGE_BLOCK_PROTOCOLS[name]())


@pytest.mark.parametrize(("most", "words", "bits"), [(5, 4, 3), (12, 3, 4), (15, 2, 4)])
def test_subsets_whose_variates_need_several_words(monkeypatch, most, words, bits):
    """The bounds 3, 5, 4, 3 one by one, as 3, 5, 4 · 3, and as 3 · 5, 4 · 3; the real limit is 2^32 − 1."""
    monkeypatch.setattr(subsets, "MOST_PER_WORD", most)
    trusted.cache_clear()  # equal designs are cached with the shares of another limit
    protocol = block(SubsetSelection, 6, Subsets(6, 3), 1, bits)
    assert protocol.design.draw_count == words
    check_in_batches(protocol)


def check_in_batches(protocol):
    generator = np.random.default_rng(20)
    tables = []
    for value in range(protocol.domain_size):
        words = passing_tuples(protocol.design, protocol.response.word_bits)
        source = ScriptedSource(words.reshape(-1), protocol.response.word_bits)
        reports = [
            (0, payload) for payload in protocol.randomize_reports(np.full(len(words), value), source).in_order()
        ]
        assert source.remaining == 0
        tables.append(Counter(payload for _, payload in reports))
        for row in generator.choice(len(words), 100, replace=False).tolist():  # the trusted client makes these, too
            assert run(protocol, value, words[row].tolist(), protocol.response.word_bits) == reports[row]
    check_ratios(tables, protocol.epsilon)
    check_block_distribution(protocol.response, tables, range(protocol.domain_size))


@pytest.mark.parametrize("name", UNARY_PROTOCOLS)
def test_unary_protocols(name):
    protocol = UNARY_PROTOCOLS[name]()
    bits, size = protocol.word_bits, protocol.domain_size
    scripts = list(product(range(1 << bits), repeat=size))
    tables = []
    for value in range(size):
        reports = [run(protocol, value, words, bits) for words in scripts]
        tables.append(Counter(payload for _, payload in reports))
        assert shipped_reports(protocol, [value] * len(scripts), scripts, bits) == (reports, 0)
    check_ratios(tables, protocol.epsilon)
    for value, table in enumerate(tables):
        for report in range(1 << size):
            factors = [
                threshold if report >> bit & 1 else (1 << bits) - threshold
                for bit in range(size)
                for threshold in [protocol.true_threshold if bit == value else protocol.false_threshold]
            ]
            assert table[report] == np.prod(factors)
    words = 1 << bits
    assert protocol.probabilities.true == protocol.true_threshold / words
    assert protocol.probabilities.false == protocol.false_threshold / words


def selector_words(protocol):
    """One word per selector; equally many words draw each selector, so all are equally likely."""
    drawn = passing(len(protocol.responses), protocol.responses[0].word_bits)
    shares = Counter(drawn.values())
    assert set(shares) == set(range(len(protocol.responses)))
    assert len(set(shares.values())) == 1
    return {selector: word for word, selector in drawn.items()}


def enumerate_modular(protocol, value, selector):
    """The reports of all accepted tuples given one selector, in one call: the words of all selectors come first."""
    response, first = protocol.responses[selector], selector_words(protocol)[selector]
    words = passing_tuples(response.design, response.word_bits)
    script = np.concatenate([np.full(len(words), first, dtype=np.uint64), words.reshape(-1)])
    reports, left = shipped_reports(protocol, np.full(len(words), value), script, response.word_bits)
    assert left == 0
    return words, reports


def enumerate_modular_singles(protocol, value, selector):
    """The same, one report at a time."""
    response, first = protocol.responses[selector], selector_words(protocol)[selector]
    bits, length = response.word_bits, response.words_per_report
    given = {words: run(protocol, value, (first, *words), bits) for words in product(range(1 << bits), repeat=length)}
    return {words: report for words, report in given.items() if report is not None}


def split_report(protocol, report):
    """A report as (selector, the payload of that selector's own design)."""
    selector, payload = report
    if protocol.name == "mss":
        return selector, payload
    for index, response in enumerate(protocol.responses):
        if payload < response.design.message_count:
            return index, payload
        payload -= response.design.message_count
    raise AssertionError(report)


@pytest.mark.parametrize("name", MODULAR_PROTOCOLS)
def test_modular_protocols(name):
    """Given the selector, a report is the block response to the residue; the selector itself is uniform."""
    protocol = MODULAR_PROTOCOLS[name]()
    of_value = [[] for _ in range(protocol.domain_size)]
    for selector, response in enumerate(protocol.responses):
        for value, tables in enumerate(of_value):
            words, reports = enumerate_modular(protocol, value, selector)
            tables.append(Counter(reports))
            if value == protocol.domain_size - 1:
                accepted = enumerate_modular_singles(protocol, value, selector)
                assert accepted == dict(zip(map(tuple, words.tolist()), reports, strict=True))
        raw = [tables[selector] for tables in of_value]
        check_ratios(raw, protocol.epsilon)
        assert {split_report(protocol, report)[0] for table in raw for report in table} == {selector}
        own = [Counter({split_report(protocol, report)[1]: n for report, n in table.items()}) for table in raw]
        check_block_distribution(response, own, [value % response.design.points for value in range(len(own))])
    check_joint_ratios(protocol, of_value)


def check_joint_ratios(protocol, of_value):
    """The whole report, selector and payload, as fractions: P(j, y|x) = (1/ℓ)·P_j(y|x), which satisfies ε."""
    odds, share = exponential_below(protocol.epsilon), Fraction(1, len(protocol.responses))
    tables = []
    for parts in of_value:
        joint = {}
        for part in parts:
            total = sum(part.values())
            for report, number in part.items():
                assert report not in joint
                joint[report] = share * Fraction(number, total)
        assert sum(joint.values()) == 1
        tables.append(joint)
    for report in tables[0]:
        probabilities = [table[report] for table in tables]
        assert max(probabilities) * SCALE <= min(probabilities) * odds


@pytest.mark.parametrize("name", ["mss", "mss-compact"])
def test_a_modular_batch_draws_all_selectors_and_then_block_by_block(name):
    protocol, generator = MODULAR_PROTOCOLS[name](), np.random.default_rng(22)
    first = selector_words(protocol)
    values = generator.integers(0, protocol.domain_size, 300)
    selectors = generator.integers(0, len(protocol.responses), 300)
    tuples = [passing_tuples(response.design, response.word_bits) for response in protocol.responses]
    own = [tuples[selector][generator.integers(len(tuples[selector]))].tolist() for selector in selectors]
    script = [first[selector] for selector in selectors.tolist()]
    for turn in range(len(protocol.responses)):
        script += [word for selector, words in zip(selectors, own, strict=True) if selector == turn for word in words]
    bits = protocol.responses[0].word_bits
    reports, left = shipped_reports(protocol, values, script, bits)
    assert left == 0
    triples = zip(values.tolist(), selectors.tolist(), own, strict=True)
    assert reports == [run(protocol, value, (first[selector], *words), bits) for value, selector, words in triples]


@pytest.mark.parametrize("name", ["grr", "ss", "ss-compact", "pgr, 3"])
def test_rejected_words_are_replaced_in_row_major_order(name):
    """Rejected words of a batch are replaced by the words after it, row by row, and again if those are rejected."""
    protocol = BLOCK_PROTOCOLS[name]()
    response, generator = protocol.response, np.random.default_rng(21)
    bits, rejecting = response.word_bits, 0
    allowed = [dict.fromkeys(range(1 << bits)), *(passing(int(bound), bits) for bound in response.design.draw_bounds)]
    for _ in range(200):
        values = generator.integers(0, protocol.domain_size, 5)
        words = generator.integers(0, 1 << bits, (5, response.words_per_report)).tolist()
        fresh = generator.integers(0, 1 << bits, 400).tolist()
        final, used = replace_rejected(words, allowed, fresh)
        rejecting += used > 0
        script = [word for row in words for word in row] + fresh
        reports, left = shipped_reports(protocol, values, script, bits)
        assert left == len(fresh) - used
        assert reports == [run(protocol, value, row, bits) for value, row in zip(values.tolist(), final, strict=True)]
    assert rejecting > 20


def replace_rejected(words, allowed, fresh):
    final, used = [list(row) for row in words], 0
    places = [(row, column) for row in range(len(words)) for column in range(len(allowed))]
    while places := [(row, column) for row, column in places if final[row][column] not in allowed[column]]:
        for row, column in places:
            final[row][column] = fresh[used]
            used += 1
    return final, used


def test_a_rejected_selector_is_replaced_before_any_block_word_is_drawn():
    protocol = MODULAR_PROTOCOLS["mss"]()
    bits = protocol.responses[0].word_bits
    allowed = passing(3, bits)
    rejected = next(word for word in range(1 << bits) if word not in allowed)
    accepted = next(word for word, selector in allowed.items() if selector == 1)
    plain = run(protocol, 5, (accepted, 2, 3), bits)
    assert plain is not None
    assert run(protocol, 5, (rejected, accepted, 2, 3), bits) == plain
    assert run(protocol, 5, (rejected, rejected, accepted, 2, 3), bits) == plain


@pytest.mark.parametrize("cases", [BLOCK_PROTOCOLS, UNARY_PROTOCOLS, MODULAR_PROTOCOLS])
def test_words_of_another_width_are_refused(cases):
    """64-bit words with a narrow threshold would almost always lie; narrow words with a 64-bit one never would."""
    protocol = next(iter(cases.values()))()
    with pytest.raises(ParameterError, match=r"needs \d+-bit words, the source returns \d+-bit words"):
        protocol.randomize(np.array([0]), ScriptedSource(np.full(100, 12345, dtype=np.uint64)))
    with pytest.raises(ParameterError, match=r"needs \d+-bit words, the source returns \d+-bit words"):
        trusted(protocol).make_reports([0], ScriptedSource(np.full(100, 12345, dtype=np.uint64)))


def test_a_script_one_word_short_runs_dry():
    protocol = BLOCK_PROTOCOLS["ss"]()
    words = passing_tuples(protocol.design, 6)[0].tolist()
    assert run(protocol, 0, words, 6) is not None
    assert run(protocol, 0, words[:-1], 6) is None
