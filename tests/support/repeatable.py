"""A fixed stream in place of the operating system's random words.

Clients without a seed, as every command has them, then send the same reports in every run, and a test that compares an
estimate with the truth either always passes or never.
"""

import contextlib
import functools
from collections.abc import Iterator

from sunzi.client.randomness import SystemSource
from sunzi.numerics.randomness import ReproducibleSource


@contextlib.contextmanager
def fixed_words() -> Iterator[None]:
    """Until the end of the block, sources take their words from a stream that always begins anew."""
    genuine, stream = SystemSource.read, ReproducibleSource(seed=1)
    SystemSource.read = functools.wraps(genuine)(lambda self, count: stream.read(count))  # the reference shows it
    try:
        yield
    finally:
        SystemSource.read = genuine
