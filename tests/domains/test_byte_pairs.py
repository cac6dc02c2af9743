"""Word pieces: tokens from public texts, by which such texts are short and nothing is lost."""

from pydoc_data.topics import topics

import pytest

import sunzi
from sunzi.client.errors import DomainError, ParameterError

WORDS = [word for text in topics.values() for word in text.lower().split() if word.isalpha()]
"""The words of Python's manual."""


def tokens(pieces, text):
    domain = sunzi.OpenDomain(pieces, longest=40)
    digits = domain.digits([text])[0]
    assert domain.text(digits) == text
    return [pieces[digit - 1] for digit in digits.tolist() if 0 < digit < domain.end]


def test_frequent_texts_become_few_tokens():
    pieces = sunzi.word_pieces(WORDS, 400)
    assert len(set(pieces)) == len(pieces) == 400
    assert tokens(pieces, "function") == ["function"]
    lengths = [len(tokens(pieces, word)) for word in WORDS[:1000]]
    assert sum(lengths) < 0.4 * sum(map(len, WORDS[:1000]))


def test_pieces_need_fewer_users_than_bytes():
    pieces = sunzi.word_pieces(WORDS, 400)
    most = max(len(tokens(pieces, word)) for word in ("weather", "restaurant", "translation"))
    plans = [
        sunzi.make_plan("prefixes", sunzi.OpenDomain(alphabet, longest), 2)
        for alphabet, longest in ((pieces, most), ("bytes", len("translation")))
    ]
    few, many = (plan.thresholds(1_000_000)[-2].frequency for plan in plans)
    assert few < 0.75 * many


def test_the_most_frequent_pair_comes_first():
    assert sunzi.word_pieces(["abab", "abc", "abab"], 6) == ["a", "b", "c", "ab", "abab"]
    assert sunzi.word_pieces(["aaaa"] * 2 + ["b"], 4) == ["a", "b", "aa", "aaaa"]


def test_rare_characters_are_left_out():
    assert sunzi.word_pieces(["aab"] * 9 + ["ac"], 2) == ["a", "b"]
    assert sunzi.word_pieces(["a\ud800"] * 2, 3) == ["a", "\ufffd", "a\ufffd"]  # a lone surrogate is no character


def test_pieces_are_no_longer_than_needed():
    assert max(map(len, sunzi.word_pieces(["ab" * 100] * 2, 50))) == 32


def test_files_have_one_text_per_line(tmp_path):
    (tmp_path / "public.txt").write_text("abab\nabc\nabab\n", encoding="utf-8")
    assert sunzi.word_pieces(tmp_path / "public.txt", 4) == ["a", "b", "c", "ab"]


@pytest.mark.parametrize(
    ("texts", "number", "error", "message"),
    [
        (["a"], 9, DomainError, "at least 2 different characters, got 1"),
        ([], 9, DomainError, "at least 2 different characters, got 0"),
        ([1], 9, DomainError, "expected texts"),
        (["ab"], 1, ParameterError, "number"),
        (["ab"], 1 << 15, ParameterError, "number"),
    ],
)
def test_mistakes_are_explained(texts, number, error, message):
    with pytest.raises(error, match=message):
        sunzi.word_pieces(texts, number)
