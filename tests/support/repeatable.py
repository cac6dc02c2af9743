"""A fixed stream in place of the operating system's random words.

Clients without a seed, as every command has them, then send the same reports in every run, and a test that compares an
estimate with the truth either always passes or never.
"""

import contextlib
from collections.abc import Iterator

from sunzi.numerics import randomness


@contextlib.contextmanager
def fixed_words() -> Iterator[None]:
    """Until the end of the block, sources that are new take their words from a stream that always begins anew."""
    genuine = randomness._system_words
    randomness._system_words = randomness.ReproducibleSource(seed=1).words
    try:
        yield
    finally:
        randomness._system_words = genuine
