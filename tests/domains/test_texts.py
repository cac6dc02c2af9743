"""Open domains: every text has digits, and the digits have a text."""

import gzip
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sunzi
from sunzi.client.domains.labels import read_domain
from sunzi.client.errors import DomainError, ParameterError, PlanError
from sunzi.domains.labels import MISSING, UNUSABLE
from sunzi.domains.texts import distinct, read_texts

LETTERS = sunzi.OpenDomain("letters", longest=5)
BYTES = sunzi.OpenDomain("bytes", longest=6)
TOKENS = sunzi.OpenDomain(["ab", "a", "abc", "ing", "b", "é", "😀"], longest=4, unknown="�")
CHARACTERS = sunzi.OpenDomain(["a", "é", "😀", "…"], longest=3)
ZERO = sunzi.OpenDomain(["a", "\0"], longest=3)
DOMAINS = [LETTERS, BYTES, TOKENS, CHARACTERS, ZERO]


def text_of(domain, text):
    return domain.text(domain.digits([text])[0])


@pytest.mark.parametrize(
    ("domain", "text", "found"),
    [
        (LETTERS, "abc", "abc"),
        (LETTERS, "", ""),
        (LETTERS, "don't", "don?t"),
        (LETTERS, "ABC", "???"),
        (LETTERS, "letters", "lette…"),
        (LETTERS, "abcde", "abcde"),
        (LETTERS, "\ud800", "?"),
        (BYTES, "né", "né"),
        (BYTES, "\ud800", "\N{REPLACEMENT CHARACTER}"),
        (BYTES, "\ud83d\ude00", "😀"),
        (BYTES, "ééé", "ééé"),
        (BYTES, "éééé", "ééé…"),
        (BYTES, "aéaéé", "aéaé…"),
        (BYTES, "aéééé", "aéé\\xc3…"),
        (TOKENS, "abcing", "abcing"),
        (TOKENS, "xa\ud83d\ude00", "\N{REPLACEMENT CHARACTER}a😀"),
        (TOKENS, "\udc00", "\N{REPLACEMENT CHARACTER}"),
    ],
)
def test_texts_come_back_from_their_digits(domain, text, found):
    assert text_of(domain, text) == found


def test_tokens_are_matched_greedily():
    assert TOKENS.digits(["abcab", "aab", "ingg"]).tolist() == [[3, 1, 9, 0, 0], [2, 1, 9, 0, 0], [4, 8, 9, 0, 0]]


def test_texts_that_are_longer_than_planned_are_values_of_their_own():
    digits = LETTERS.digits(["abcde", "abcdef", "abcdeg", "abcd"])
    assert LETTERS.is_longer(digits).tolist() == [False, True, True, False]
    assert [LETTERS.text(row) for row in distinct(digits)] == ["abcde", "abcde…", "abcd"]


@given(st.lists(st.text(st.characters(), max_size=9), max_size=6))
def test_any_text_has_digits_that_give_the_same_digits_again(texts):
    for domain in DOMAINS:
        digits = domain.digits(texts)
        assert digits.shape == (len(texts), domain.width)
        assert digits.max(initial=0) <= domain.end
        whole = ~domain.is_longer(digits)
        assert np.all((digits == domain.end).sum(axis=1) == whole)
        assert np.array_equal(domain.digits([domain.text(row) for row in digits[whole]]), digits[whole])


@given(st.lists(st.text(st.sampled_from("abé😀…?\0"), max_size=7), max_size=9))
def test_many_texts_come_back_like_one(texts):
    for domain in DOMAINS:
        digits = domain.digits(texts)
        assert list(domain.texts(digits)) == [domain.text(row) for row in digits]


def test_one_text_and_many_have_the_same_digits():
    texts = ["a", "abc", "é", "x" * 20, ""]
    for domain in DOMAINS:
        assert [domain.index(text) for text in texts] == [tuple(row) for row in domain.indices(texts).tolist()]


@pytest.mark.parametrize("value", [None, float("nan"), 3, b"abc", np.datetime64("NaT")])
def test_values_that_are_no_texts_are_refused(value):
    with pytest.raises(DomainError, match=r"missing|is not text"):
        LETTERS.indices(["abc", value])
    assert LETTERS.locate(["abc", value])[1, 0] in (MISSING, UNUSABLE)


def test_data_frames_have_columns_of_texts():
    pandas = pytest.importorskip("pandas")
    assert LETTERS.indices(pandas.Series(["ab", "c"])).tolist() == LETTERS.indices(["ab", "c"]).tolist()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: sunzi.OpenDomain("words", 5), '"letters", "bytes" or a list'),
        (lambda: sunzi.OpenDomain(["a", "a"], 5), "'a' occurs twice"),
        (lambda: sunzi.OpenDomain(["a", ""], 5), "at least one character"),
        (lambda: sunzi.OpenDomain(["a", "\ud800"], 5), "at least one character"),
        (lambda: sunzi.OpenDomain(["?"], 5), "between 2 and"),
        (lambda: sunzi.OpenDomain("letters", 0), "longest must be a whole number"),
        (lambda: sunzi.OpenDomain("letters", 5000), "longest must be a whole number"),
        (lambda: sunzi.OpenDomain("bytes", 5, unknown="?"), "no unknown token"),
        (lambda: sunzi.OpenDomain("letters", 5, note="x" * 300), "a note must be printable text"),
        (lambda: sunzi.OpenDomain("letters", 5, note="lower\ncase"), "a note must be printable text"),
        (lambda: LETTERS.check_indices(np.array([1, 2])), "rows of digits"),
        (lambda: LETTERS.label(3), "no list of values"),
        (lambda: sunzi.RecordDomain({"word": LETTERS, "crashed": ["no", "yes"]}), "needs a list of values or a range"),
    ],
)
def test_mistakes_are_explained(make, message):
    with pytest.raises(ParameterError, match=message):
        make()


@pytest.mark.parametrize("domain", [*DOMAINS, sunzi.OpenDomain("letters", 3, note="lower case, NFC")])
def test_domains_come_back_from_plan_files(domain):
    assert read_domain(json.loads(json.dumps(domain.to_json())), sunzi.Plan.domain_kind) == domain


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"symbols": ["a", "b"], "longest": 3}, "symbols, longest"),
        ({"symbols": ["a", "b"], "longest": 3, "unknown": "?"}, "one of the symbols"),
        ({"symbols": "letters", "longest": 3, "unknown": "?"}, "a list of tokens"),
        ({"symbols": "bytes", "longest": 3, "unknown": "?"}, "symbols, longest"),
        ({"symbols": "bytes", "longest": True}, "whole number"),
        ({"symbols": "bytes", "longest": 3, "note": ""}, "a note must not be empty"),
        ({"symbols": ["a", 1], "longest": 3, "unknown": "a"}, "a token must be a text"),
    ],
)
def test_wrong_records_are_refused(record, message):
    with pytest.raises(PlanError, match=message):
        read_domain(record, sunzi.Plan.domain_kind)


def test_lists_are_read_from_files(tmp_path):
    plain, packed = tmp_path / "list.txt", tmp_path / "list.txt.gz"
    plain.write_text("one\r\n\ntwö\nthree", encoding="utf-8-sig", newline="")
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    for path in (plain, str(packed)):
        assert [text for piece in read_texts(path) for text in piece] == ["one", "", "twö", "three"]
    plain.write_bytes(b"\xff")
    with pytest.raises(DomainError, match="not UTF-8"):
        list(read_texts(plain))
    with pytest.raises(DomainError, match="expected texts"):
        list(read_texts([1, 2]))


def test_words_for_people():
    assert LETTERS.in_words() == "texts of up to 5 out of 27 tokens; longer ones are truncated"
    assert repr(BYTES).startswith("OpenDomain(texts of up to 6 out of bytes")
