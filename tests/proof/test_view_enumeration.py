"""The shipped randomisers of ordered values, tables, texts and numbers on all tuples of narrow words, in integers only.

As in test_enumeration: tuples with a rejected word are left out, and the others are equally likely.
"""

from collections import Counter
from fractions import Fraction
from itertools import product
from math import lcm, prod

import numpy as np
import pytest
from enumeration import check_ratios, passing, passing_tuples, shipped_reports

from sunzi.client.protocols.views import SHARE_BITS
from sunzi.designs.cyclotomic import Cyclotomic
from sunzi.designs.projective import Projective
from sunzi.designs.response import BlockResponse
from sunzi.designs.singletons import Singletons
from sunzi.domains.texts import OpenDomain
from sunzi.numerics.randomness import ScriptedSource
from sunzi.protocols.ordered_views import OrderedViews
from sunzi.protocols.prefix_views import PrefixView, PrefixViews
from sunzi.protocols.rounding import RoundedNumbers
from sunzi.protocols.table_views import TableViews
from sunzi.protocols.views import View


def view(cells, parts, design, epsilon, bits):
    """A view with this many of the 2^bits equal parts of all selector words."""
    return View(cells, parts << (SHARE_BITS - bits), BlockResponse(design, Fraction(epsilon), word_bits=bits))


def ordered(size, levels, epsilon, bits):
    views = tuple(view(1 << level, parts, design, epsilon, bits) for level, parts, design in levels)
    return OrderedViews(size, views, tuple(level for level, _, _ in levels))


def tables(sizes, listed, epsilon, bits):
    views = tuple(view(prod(sizes[a] for a in table), *rest, epsilon, bits) for table, *rest in listed)
    return TableViews(prod(sizes), views, sizes, tuple(table for table, _, _ in listed))


TEXTS = OpenDomain("letters", longest=4)
TEN_TEXTS = TEXTS.digits(["", "a", "b", "ab", "ba", "abcd", "abce", "abcde", "\ud800", "naïve"]).astype(np.int64)


def prefixes(listed, epsilon, bits):
    """Views of (modulus, parts, design, digits, base, role)."""
    views = [
        PrefixView(modulus, parts << (SHARE_BITS - bits), BlockResponse(design, Fraction(epsilon), bits), *prefix)
        for modulus, parts, design, *prefix in listed
    ]
    return PrefixViews(TEXTS.size, tuple(views))


def values_of(protocol):
    """All values, or ten texts where there is no list of values."""
    return list(TEN_TEXTS) if isinstance(protocol, PrefixViews) else range(protocol.domain_size)


VIEWS = {
    "ordered, two levels": lambda: ordered(4, [(1, 3, Singletons(2)), (2, 5, Cyclotomic(5, 2))], 1, 3),
    "ordered, three levels": lambda: ordered(
        8, [(1, 1, Singletons(2)), (2, 6, Singletons(4)), (3, 9, Singletons(11))], 2, 4
    ),
    "ordered, one level": lambda: ordered(4, [(2, 8, Cyclotomic(7, 3))], 1, 3),
    "tables": lambda: tables((2, 3), [((0,), 2, Singletons(2)), ((0, 1), 6, Cyclotomic(7, 3))], 1, 3),
    "tables, three attributes": lambda: tables(
        (2, 3, 2), [((1,), 1, Cyclotomic(5, 4, (0, 1))), ((0, 2), 4, Singletons(5)), ((1, 2), 3, Singletons(6))], 1, 3
    ),
    "prefixes": lambda: prefixes(
        [
            (7, 3, Projective(2, 3), 2, 3, "search"),
            (5, 3, Cyclotomic(5, 2), 5, 3, "search"),
            (5, 2, Cyclotomic(5, 2), 5, 2, "count"),
        ],
        1,
        3,
    ),
}
NUMBERS = {
    "two points": lambda: RoundedNumbers(6, BlockResponse(Singletons(2), Fraction(1), word_bits=5)),
    "three points": lambda: RoundedNumbers(8, BlockResponse(Singletons(3), Fraction(2), word_bits=4)),
    "as many points as values": lambda: RoundedNumbers(4, BlockResponse(Singletons(4), Fraction(1), word_bits=4)),
}


def drawn_view(protocol, word, bits):
    """The view of a selector word, from the shares alone."""
    upper, start = word << (SHARE_BITS - bits), 0
    for index, view in enumerate(protocol.views):
        start += view.share
        if upper < start:
            return index
    raise AssertionError(word)


def cell(protocol, index, value):
    """The cell of a value, as docs/format.md defines it."""
    if isinstance(protocol, OrderedViews):
        return value * protocol.views[index].cells // protocol.domain_size
    if isinstance(protocol, PrefixViews):
        view, found = protocol.views[index], 0
        for digit in value[: view.digits].tolist():
            found = (found * view.base + digit) % view.cells if digit else found
        return found
    digits = np.unravel_index(value, protocol.sizes)
    table = protocol.tables[index]
    return int(np.ravel_multi_index([digits[a] for a in table], [protocol.sizes[a] for a in table]))


@pytest.mark.parametrize("name", VIEWS)
def test_views(name):
    """Every selector word with every accepted tuple of its view, in one batch per value."""
    protocol = VIEWS[name]()
    bits = protocol.responses[0].word_bits
    tuples = [passing_tuples(response.design, bits) for response in protocol.responses]
    views = [drawn_view(protocol, word, bits) for word in range(1 << bits)]
    for index, view in enumerate(protocol.views):
        assert Fraction(views.count(index), 1 << bits) == Fraction(view.share, 1 << SHARE_BITS)
    selectors = [word for word, index in enumerate(views) for _ in tuples[index]]
    own = [words for index in range(len(tuples)) for word in views if word == index for words in tuples[index].tolist()]
    script = np.array([*selectors, *(word for words in own for word in words)], dtype=np.uint64)
    whole = lcm(*map(len, tuples))
    reported = []
    for value in values_of(protocol):
        reports, left = shipped_reports(protocol, [value] * len(selectors), script, bits)
        assert left == 0
        table = Counter()
        for word, (_, message) in zip(selectors, reports, strict=True):
            table[message] += whole // len(tuples[views[word]])
        assert sum(table.values()) == whole << bits
        check_cells(protocol, table, value)
        reported.append(table)
    check_ratios(reported, protocol.epsilon)


def check_cells(protocol, table, value):
    """P(j, y|x) = share_j · P_j(y|cell of x), and P_j is the design's: the distribution of its own block response."""
    total, offset = sum(table.values()), 0
    for index, view in enumerate(protocol.views):
        design, share = view.response.design, Fraction(view.share, 1 << SHARE_BITS)
        inside, outside = view.response.message_probabilities()
        point = cell(protocol, index, value)
        for message in range(design.message_count):
            contained = bool(design.contains(np.array([message]), np.array([point]))[0])
            assert Fraction(table[offset + message], total) == share * (inside if contained else outside)
        offset += design.message_count


@pytest.mark.parametrize("name", ["ordered, two levels", "tables", "prefixes"])
def test_a_single_report_draws_the_words_of_a_batch_of_one(name):
    protocol, generator = VIEWS[name](), np.random.default_rng(23)
    bits = protocol.responses[0].word_bits
    for value, word in product(values_of(protocol), range(1 << bits)):
        index = drawn_view(protocol, word, bits)
        tuples = passing_tuples(protocol.responses[index].design, bits)
        words = tuples[generator.integers(len(tuples))]
        source = ScriptedSource(np.array([word, *words.tolist()], dtype=np.uint64), bits)
        (message,) = protocol.randomize(np.array([value]), source).tolist()
        expected = protocol.responses[index].randomize(
            np.array([cell(protocol, index, value)]), ScriptedSource(words, bits)
        )
        assert message == protocol.join([np.array([], dtype=np.int64)] * index + [expected])[-1]
        assert source.remaining == 0


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers(name):
    """Every rounding with every response: ε-LDP, and the point is right on average, exactly."""
    protocol = NUMBERS[name]()
    response, steps, points = protocol.response, protocol.domain_size - 1, protocol.grid_points
    bits = response.word_bits
    roundings = list(passing(steps, bits))
    tuples = passing_tuples(response.design, bits).tolist()
    script = [word for word in roundings for _ in tuples]
    script += [word for _ in roundings for words in tuples for word in words]
    true, false = response.message_probabilities()
    reported = []
    for value in range(protocol.domain_size):
        values = np.full(len(roundings) * len(tuples), value)
        reports, left = shipped_reports(protocol, values, script, bits)
        table = Counter(payload for _, payload in reports)
        assert left == 0
        below, rest = divmod(value * (points - 1), steps)
        up = Fraction(rest, steps)
        assert below + up == Fraction(value * (points - 1), steps)
        for point in range(points):
            share = (1 - up) * (point == below) + up * (point == below + 1)
            assert Fraction(table[point], values.size) == share * true + (1 - share) * false
        reported.append(table)
    check_ratios(reported, protocol.epsilon)
