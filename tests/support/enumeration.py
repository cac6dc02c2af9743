"""All tuples of narrow words that no draw rejects, the reports that the trusted client makes of them, and the check
that a distribution is ε-LDP, in integers.
"""

from dataclasses import fields, is_dataclass
from fractions import Fraction
from functools import cache

import numpy as np

from sunzi.client.thresholds import exponential_below
from sunzi.numerics.randomness import ScriptedSource

SCALE = 1 << 96


def passing(bound, bits):
    """The words that Lemire's rule accepts and the integer of each, computed word by word."""
    pairs = [divmod(word * bound, 1 << bits) for word in range(1 << bits)]
    return {word: high for word, (high, low) in enumerate(pairs) if low >= (1 << bits) % bound}


def passing_tuples(design, bits):
    """All tuples of words of one block response in which no word is rejected, (n, words)."""
    columns = [range(1 << bits), *(list(passing(int(bound), bits)) for bound in design.draw_bounds)]
    return np.stack([axis.reshape(-1) for axis in np.meshgrid(*columns, indexing="ij")], axis=1).astype(np.uint64)


def check_ratios(tables, epsilon):
    """P(y|x)·2^96 ≤ P(y|x')·E ≤ P(y|x')·2^96·e^ε for all y, x and x'. All tables must have the same total."""
    odds = exponential_below(Fraction(epsilon))
    assert len({sum(table.values()) for table in tables}) == 1
    for report in set().union(*tables):
        counts = [table[report] for table in tables]
        assert max(counts) * SCALE <= min(counts) * odds


@cache
def trusted(protocol):
    """The same protocol, view, response or design in the classes of ``sunzi.client`` alone: what runs on a device."""
    if isinstance(protocol, tuple):
        return tuple(map(trusted, protocol))
    if not is_dataclass(protocol):
        return protocol
    kind = next(each for each in type(protocol).__mro__ if each.__module__.startswith("sunzi.client."))
    return kind(**{each.name: trusted(getattr(protocol, each.name)) for each in fields(kind) if each.init})


def shipped_reports(protocol, values, words, bits):
    """The reports that the trusted client makes of these words, as (selector, payload), and how many words it leaves;
    the vectorised side must make the same ones and leave as many.
    """
    words, values = np.asarray(words, dtype=np.uint64).reshape(-1), np.asarray(values)
    source, beside = ScriptedSource(words, bits), ScriptedSource(words, bits)
    reports = trusted(protocol).make_reports(
        [tuple(row) if values.ndim > 1 else row for row in values.tolist()], source
    )
    encoded = protocol.randomize_reports(values, beside)
    assert list(zip(encoded.selectors.tolist(), encoded.in_order(), strict=True)) == reports
    assert beside.remaining == source.remaining
    return reports, source.remaining
