"""All tuples of narrow words that no draw rejects, and the check that a distribution is ε-LDP, in integers."""

from fractions import Fraction

import numpy as np

from sunzi.client.thresholds import exponential_below

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
