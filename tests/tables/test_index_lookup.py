"""Indices of rows, and what becomes of unknown and missing values."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sunzi.client.errors import DomainError, ParameterError
from sunzi.domains.labels import Domain
from sunzi.domains.ranges import OrderedDomain
from sunzi.domains.records import RecordDomain
from sunzi.domains.texts import OpenDomain
from sunzi.tables import index_lookup
from sunzi.tables.column_rows import Rows
from sunzi.tables.index_lookup import IndexLookup, RecordLookup, TextLookup, hints_at


def texts(*cells) -> Rows:
    known = list(dict.fromkeys(cells))
    return Rows(np.array([known.index(cell) for cell in cells]), known)


LABELS = Domain(["a", "b", "rest"])
WITH_OTHER = Domain(["a", "b", "rest"], other="rest")
SIZE = Domain(10)


class TestIndexLookup:
    def test_labels_and_integers(self):
        assert IndexLookup(LABELS).indices(texts("b", "a", "b")).tolist() == [1, 0, 1]
        assert IndexLookup(SIZE).indices(texts("7", "0", "03")).tolist() == [7, 0, 3]
        assert IndexLookup(SIZE).indices(Rows(np.array([7, 0], dtype=np.int8))).tolist() == [7, 0]

    def test_other_takes_the_unknown_and_the_missing(self):
        assert IndexLookup(WITH_OTHER).indices(texts("a", "zebra", "", None)).tolist() == [0, 2, 2, 2]

    def test_skipping_leaves_out_the_missing_only(self):
        lookup = IndexLookup(WITH_OTHER, skip_missing=True)
        assert lookup.indices(texts("a", "zebra", "", None)).tolist() == [0, 2]
        assert (lookup.rows, lookup.skipped) == (4, 2)
        numbers = Rows(np.array([1, 0, 2]), None, np.array([False, True, False]))
        assert IndexLookup(SIZE, skip_missing=True).indices(numbers).tolist() == [1, 2]

    def test_empty_text_may_be_a_label(self):
        assert IndexLookup(Domain(["", "a"])).indices(texts("", "a")).tolist() == [0, 1]

    @pytest.mark.parametrize(
        ("domain", "piece", "words"),
        [
            (LABELS, texts("a", "zebra"), "row 103: label 'zebra' is not in the domain"),
            (LABELS, texts("a", ""), "row 103 has no value; give the domain an 'other'"),
            (LABELS, texts("a", None), "--skip-missing"),
            (LABELS, Rows(np.array([1])), "row 102: value 1 is not text, but this domain's values are labels"),
            (SIZE, Rows(np.array([1, 10])), r"row 103: value 10 is not in the domain 0 … 9"),
            (SIZE, Rows(np.array([1, 2**63 + 5], dtype=np.uint64)), "value 9223372036854775813 is not"),
            (SIZE, Rows(np.array([1, -1])), "row 103: value -1"),
            (SIZE, texts("1", "1.0"), "row 103: value '1.0' is not one of the integers"),
            (SIZE, texts("1", "10"), "row 103: value 10 is not in the domain 0 … 9"),
            (SIZE, texts("1", ""), "row 103 has no value; fill it in"),
            (SIZE, texts("1", "٣"), "row 103: value '٣'"),
            (SIZE, texts("1", "9" * 5000), "row 103"),
            (SIZE, Rows(np.array([1, 0]), None, np.array([False, True])), "row 103 has no value; fill it in"),
        ],
    )
    def test_the_first_wrong_row_is_named(self, domain, piece, words):
        lookup = IndexLookup(domain)
        lookup.rows = 101  # rows of earlier pieces
        with pytest.raises(DomainError, match=words):
            lookup.indices(piece)

    def test_an_unknown_value_is_an_error_even_where_missing_ones_are_skipped(self):
        with pytest.raises(DomainError, match="row 2: label 'zebra'"):
            IndexLookup(LABELS, skip_missing=True).indices(texts(None, "zebra"))


@pytest.mark.parametrize("domain", [LABELS, WITH_OTHER, Domain(["", "a"]), SIZE])
@given(cells=st.lists(st.sampled_from(["", "a", "b", "rest", "zebra", None]), min_size=1, max_size=6))
def test_texts_follow_the_domains_own_rules(domain, cells):
    """A file gives the same indices as a list of the same values, and is refused exactly when the list is."""
    try:
        expected = domain.indices(cells).tolist()
    except DomainError:
        with pytest.raises(DomainError):
            IndexLookup(domain).indices(texts(*cells))
    else:
        assert IndexLookup(domain).indices(texts(*cells)).tolist() == expected


BROWSERS = Domain(["Chrome", "Mobile Safari", "x", "X", "other"], other="other")


def test_what_is_reported_as_other_is_counted():
    lookup = IndexLookup(BROWSERS)
    assert lookup.describe() is None
    lookup.indices(texts("Chrome", "chrome", "chrome", "lynx", None, ""))
    lookup.indices(texts("lynx", "chrome", "Mobile  Safari ", *"abcdef"))
    assert (lookup.rows, lookup.unknown, lookup.missing) == (15, 12, 2)
    assert lookup.commonest(2) == [("chrome", 3), ("lynx", 2)]
    assert lookup.describe() == (
        "of 15 rows, 12 unknown and 2 missing are reported as 'other'; unknown are 'chrome' (3), 'lynx' (2), "
        "'Mobile  Safari ' (1), 'a' (1), 'b' (1); 'chrome' differs from the label 'Chrome' only by case: --fold case; "
        "'Mobile  Safari ' differs from the label 'Mobile Safari' only by spaces: --fold space"
    )


def test_a_column_of_unknown_values_is_refused():
    lookup = IndexLookup(BROWSERS)
    lookup.indices(texts("Chrome", "lynx"))
    lookup.check()
    lookup.indices(texts("lynx"))
    with pytest.raises(DomainError, match=r"^66.7 % of the values .* more than 50 %: of 3 rows, 2 unknown"):
        lookup.check()
    with pytest.raises(DomainError, match="more than 60 %"):
        lookup.check(0.6)
    lookup.check(1)
    IndexLookup(BROWSERS).check()  # no rows


def test_folding_ignores_case_and_spaces():
    cells = texts(" chrome", "CHROME", "mobile\tsafari", "Chrome", "x", "X", " ")
    both = IndexLookup(BROWSERS, fold=("case", "space"))
    assert both.indices(cells).tolist() == [0, 0, 1, 0, 2, 3, 4]
    assert (both.unknown, both.missing) == (0, 1)
    case = IndexLookup(BROWSERS, fold=("case",))
    assert case.indices(cells).tolist() == [4, 0, 4, 0, 2, 3, 4]
    ambiguous = IndexLookup(BROWSERS, fold=("space", "case"))
    assert ambiguous.indices(texts(" x")).tolist() == [4]  # which of two labels?
    with pytest.raises(ParameterError, match="case and space, got 'accents'"):
        IndexLookup(BROWSERS, fold=("accents",))
    with pytest.raises(ParameterError, match="needs a domain of labels"):
        IndexLookup(SIZE, fold=("case",))


def test_an_unknown_text_has_a_hint():
    with pytest.raises(DomainError, match=r"row 1: label 'B ' is not in .* the label 'b' only by case and spaces"):
        IndexLookup(LABELS).indices(texts("B "))
    assert hints_at(BROWSERS, ["lynx"]) == hints_at(SIZE, ["lynx"]) == []


def test_memory_for_unknown_texts_is_bounded(monkeypatch):
    monkeypatch.setattr(index_lookup, "_MOST_TEXTS", 4)
    lookup = IndexLookup(WITH_OTHER)
    for text in "cdefghijk":
        lookup.indices(texts("zebra", "zebra", text))
    assert lookup.commonest(1) == [("zebra", 18)]
    assert (len(lookup.commonest(100)) <= 4, lookup.unknown) == (True, 27)


class TestRecordLookup:
    DOMAIN = RecordDomain({"a": ["x", "y"], "b": WITH_OTHER, "n": OrderedDomain(0, 8, 4, clamp=True)})

    def rows(self, *records) -> Rows:
        first, *others = (texts(*column) for column in zip(*records, strict=True))
        return replace(first, public=(*others, texts(*["public"] * len(records))))

    def test_attributes_are_columns(self):
        lookup = RecordLookup(self.DOMAIN)
        found = lookup.indices(self.rows(("x", "a", "1"), ("y", "zebra", "7.9"), ("y", "", "99")))
        assert found.tolist() == [0, 12 + 8 + 3, 12 + 8 + 3]
        assert (
            lookup.describe()
            == "b: of 3 rows, 1 unknown and 1 missing are reported as 'rest'; unknown are 'zebra' (1); "
            "n: 1 of 3 rows outside the range are reported as its nearest end"
        )

    def test_rows_without_some_attribute_can_be_left_out(self):
        lookup = RecordLookup(self.DOMAIN, skip_missing=True)
        assert lookup.indices(self.rows(("x", "", "1"), ("x", "b", "1"), ("", "b", "1"))).tolist() == [4]
        assert (lookup.rows, lookup.skipped) == (3, 2)

    def test_errors_name_the_column_and_the_row(self):
        with pytest.raises(DomainError, match="column 'a': row 2: label 'z' is not in the domain"):
            RecordLookup(self.DOMAIN).indices(self.rows(("x", "a", "1"), ("z", "a", "1")))
        with pytest.raises(DomainError, match="column 'n': row 1: value 'many' is not a number"):
            RecordLookup(self.DOMAIN).indices(self.rows(("x", "a", "many")))

    def test_mostly_unknown_attributes_are_refused(self):
        lookup = RecordLookup(self.DOMAIN)
        lookup.indices(self.rows(("x", "zebra", "1"), ("x", "lion", "1")))
        with pytest.raises(DomainError, match="column 'b': 100 % of the values are not in the domain"):
            lookup.check()


class TestTextLookup:
    DOMAIN = OpenDomain("letters", longest=3)

    def test_texts_have_digits(self):
        lookup = TextLookup(self.DOMAIN)
        rows = texts("ab", "", "abcd", "ab")
        assert np.array_equal(lookup.indices(rows), self.DOMAIN.digits(["ab", "", "abcd", "ab"]))
        assert np.array_equal(lookup.indices(replace(rows, codes=rows.codes[:1])), self.DOMAIN.digits(["ab"]))
        assert (lookup.rows, lookup.skipped, lookup.longer) == (5, 0, 1)
        assert lookup.describe() == "1 of 5 rows are longer than 3 tokens and count as their beginning with …"
        lookup.check()
        assert TextLookup(self.DOMAIN).describe() is None

    def test_rows_without_a_text_are_refused_or_left_out(self):
        with pytest.raises(DomainError, match="row 2: a value is missing"):
            TextLookup(self.DOMAIN).indices(texts("a", None))
        lookup = TextLookup(self.DOMAIN, skip_missing=True)
        assert np.array_equal(lookup.indices(texts("a", None, "b")), self.DOMAIN.digits(["a", "b"]))
        assert (lookup.rows, lookup.skipped) == (3, 1)
        with pytest.raises(DomainError, match="row 4: value 5 is not text"):
            lookup.indices(texts(5))
        with pytest.raises(DomainError, match="holds numbers"):
            lookup.indices(Rows(np.array([1, 2])))
