"""Plans of the accepted vectors that are about texts which nobody has listed."""

from __future__ import annotations

from collections.abc import Iterator

from conformance_vectors.cases import Case
from conformance_vectors.plans import prefix
from sunzi.designs.cyclotomic import Cyclotomic
from sunzi.designs.projective import Projective
from sunzi.designs.singletons import Singletons
from sunzi.domains.texts import OpenDomain

ALL = 1 << 32
"""The sum of the shares of all views."""

LARGEST_PRIME = (1 << 26) - 5
# Empty, too long, not of the alphabet, combining and astral characters, lone surrogates in either order, pairs of them.
AWKWARD_TEXTS = [
    "hello",
    "",
    "abcde",
    "abcdef",
    "z" * 40,
    "don't",
    "ABC",
    "naïve",
    "nai\u0308ve",
    "日本 🏯",
    "\ud800",
    "a\udc00b",
    "\udc00\ud800",
    "\ud83d\ude00\ude00",
    "\ud83d\ud83d\ude00x",
    "\0\n\u2028\ufeff",
    "\uffff\U0010ffff",
]


def text_cases() -> Iterator[Case]:
    """Letters, bytes and lists of tokens, with every design, and with the largest numbers that occur."""
    letters = OpenDomain("letters", longest=5)
    views = [
        (prefix(2, 28, 73), 1 << 30),
        (prefix(4, 71, 71), 1 << 30),
        (prefix(6, 30, 67), 1 << 30),
        (prefix(6, 29, 61, "count"), 1 << 30),
    ]
    designs = [Projective(8, 3, (1, 1, 0, 1)), Projective(8, 3, (1, 0, 1, 1)), Cyclotomic(67, 6), Singletons(61)]
    yield Case("prefixes_letters", "prefixes", letters, "2", designs, AWKWARD_TEXTS, views=views)
    octets = OpenDomain("bytes", longest=6, note="as typed, in UTF-8: nothing is changed")
    views = [(prefix(1, 257, 397), 12_345), (prefix(7, 300, 389), 1), (prefix(7, 300, 383, "count"), ALL - 12_346)]
    designs = [Projective(7, 4), Singletons(400), Cyclotomic(401, 8)]
    yield Case("prefixes_bytes", "prefixes", octets, "3/2", designs, AWKWARD_TEXTS, views=views)
    symbols = ["a", "ab", "abc", "abcdef", "https://", "www.", ".com", "constructor", "__proto__", "é", "e\u0301"]
    symbols += ["e", "😀", "😀😀", "👩\u200d👧", "👩", "\ufffd", "0", " "]
    tokens = OpenDomain(symbols, longest=4, unknown="abcdef")
    texts = ["https://www.constructor.com", "abcde", "abcdefab", "ab abc a", "é", "e\u0301e", "😀😀😀", "👩\u200d👧👩"]
    texts += ["👩\u200d", "__proto__", "toString", "0", "00000", "😀\ud83d", "\ud800", "", "a\ude00", "🏯" * 5]
    views = [(prefix(3, 20, 31), 1 << 31), (prefix(5, 21, 31), 1 << 30), (prefix(5, 23, 29, "count"), 1 << 30)]
    designs = [Projective(5, 3), Projective(2, 5), Projective(2, 5)]
    yield Case("prefixes_tokens", "prefixes", tokens, "1", designs, texts, views=views)
    # Every step of the hash is just below 2^52 + 2^26; the longest text takes 1,025 of them.
    binary = OpenDomain(["0", "1"], longest=1024, unknown="1")
    texts = ["10" * 512, "1" * 1024, "1" * 1023, "0" * 1025, "", "1"]
    views = [
        (prefix(1025, LARGEST_PRIME, 1 << 26), 1 << 31),
        (prefix(1025, LARGEST_PRIME - 1, LARGEST_PRIME, "count"), 1 << 31),
    ]
    designs = [Projective(409, 4), Singletons(LARGEST_PRIME)]
    yield Case("prefixes_largest", "prefixes", binary, "20", designs, texts, batch_rows=3, views=views)
    many = OpenDomain([chr(0x4E00 + number) for number in range(700)], longest=1, unknown="一")
    views = [(prefix(2, 701, 1021), ALL - 1), (prefix(2, 1013, 1013, "count"), 1)]
    designs = [Singletons(1021), Singletons(1013)]
    yield Case("prefixes_700_tokens", "prefixes", many, "4", designs, ["丁", "七丁", "", "x", "䷿"], views=views)
