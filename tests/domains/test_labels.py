"""Domains: labels of any text, in the plan or in a separate file, and values in every kind of column."""

import gzip
import hashlib
import json
import pickle
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sunzi.client.errors import DomainError, ParameterError
from sunzi.domains.labels import MISSING, UNKNOWN, UNUSABLE, Domain
from sunzi.plan import Plan, load_plan, make_plan
from sunzi.tables.writers import histogram_table

LABELS = st.lists(st.text(st.characters(codec="utf-8"), max_size=12), min_size=2, max_size=12, unique=True)


@pytest.mark.slow
@settings(max_examples=60)
@given(LABELS, st.data())
def test_labels_may_be_any_text(labels, data):
    other = data.draw(st.none() | st.sampled_from(labels))
    plan = make_plan("grr", labels, 1, other=other)
    record = plan.to_json()
    for text in (plan.canonical, json.dumps(record), json.dumps(record, indent=2, ensure_ascii=False)):
        loaded = Plan.from_json(text)
        assert loaded == plan
        assert loaded.domain.labels == tuple(labels)
    assert plan.domain.indices(labels).tolist() == list(range(len(labels)))
    assert [plan.domain.label(index) for index in range(len(labels))] == labels
    unknown = "".join(labels) + "x"
    if other is None:
        with pytest.raises(DomainError, match="not in the domain"):
            plan.domain.index(unknown)
    else:
        assert plan.domain.index(unknown) == labels.index(other)


def test_labels_are_not_normalised():
    """Composed and decomposed é look alike but are two labels."""
    domain = Domain(["\u00e9", "e\u0301"])
    assert domain.index("e\u0301") == 1


@pytest.fixture
def label_file(tmp_path):
    path = tmp_path / "labels.txt"
    Domain(["alpha", "beta", "γ", "other"]).save_labels(path)
    return path


def test_labels_in_a_file_of_their_own(label_file, tmp_path):
    """The plan contains a hash of the labels; without the file it cannot turn labels into indices."""
    domain = Domain.from_file(label_file, other="other")
    plan = make_plan("grr", domain, 1)
    path = tmp_path / "plan.json"
    plan.save(path)
    assert "alpha" not in path.read_text()
    assert hashlib.sha256(label_file.read_bytes()).hexdigest() in path.read_text()
    bare = load_plan(path)
    assert bare.fingerprint == plan.fingerprint
    with pytest.raises(DomainError, match="labels=PATH"):
        bare.client().report("alpha")
    with pytest.raises(DomainError, match="labels=PATH"):
        bare.client().report(0)
    loaded = load_plan(path, labels=label_file)
    assert loaded == plan
    assert loaded.domain.labels == ("alpha", "beta", "γ", "other")
    assert loaded.domain.indices(["γ", "unheard of"]).tolist() == [2, 3]
    reports = loaded.client(seed=1).report_batch(["alpha", "γ"])
    assert bare.tally(reports) == loaded.tally(reports)
    assert loaded.estimate(loaded.tally(reports)).top(1)[0].label in domain.labels


@pytest.mark.parametrize(
    "content",
    [
        b"alpha\nbeta\n\xce\xb3\n",
        b"beta\nalpha\n\xce\xb3\nother\n",
        b"alpha\nalpha\n\xce\xb3\nother\n",
        b"alpha\nbeta\n\xff\nother\n",
        b"alpha\rbeta\n\xce\xb3\nother\n",
        b"",
    ],
)
def test_a_wrong_label_file_is_refused(content, label_file, tmp_path):
    path, wrong = tmp_path / "plan.json", tmp_path / "wrong.txt"
    make_plan("grr", Domain.from_file(label_file), 1).save(path)
    wrong.write_bytes(content)
    with pytest.raises(DomainError):
        load_plan(path, labels=wrong)


@pytest.mark.parametrize(
    "content",
    [
        "alpha\r\nbeta\r\nγ\r\nother\r\n",
        "alpha\nbeta\nγ\nother",
        "alpha\nbeta\nγ\nother\n\n \n",
        "\ufeffalpha\nbeta\nγ\nother\n",
        "alpha \nbeta\nγ\t\nother  ",
    ],
)
def test_label_files_as_people_write_them_hold_the_same_labels(content, label_file, tmp_path):
    path, written = tmp_path / "plan.json", tmp_path / "written.txt"
    written.write_bytes(content.encode())
    plan = make_plan("grr", Domain.from_file(label_file), 1)
    plan.save(path)
    assert make_plan("grr", Domain.from_file(written), 1) == plan
    assert load_plan(path, labels=written).domain.labels == ("alpha", "beta", "γ", "other")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "is empty; a label file has one label per line"),
        ("\ufeff\n \n", "is empty"),
        ("a\n\nb\n", "line 2 is blank; remove it"),
        ("\na\nb\n", "line 1 is blank"),
        ("a\nb\na\n", "label 'a' occurs twice, in lines 1 and 3"),
        ("a\nb\na \n", "label 'a' occurs twice, in lines 1 and 3"),
        ("a\nb\rc\nd\n", "line 2 has a carriage return"),
        ("a\n", "between 2 and"),
        ("a\nb\udcff\n", "line 2 is not UTF-8 text; save the file as UTF-8"),
    ],
)
def test_what_is_ambiguous_in_a_label_file_is_refused(content, reason, tmp_path):
    path = tmp_path / "labels.txt"
    path.write_bytes(content.encode("utf-8", "surrogateescape"))
    with pytest.raises(DomainError, match=reason):
        Domain.from_file(path)


def test_the_canonical_label_file_is_read_as_it_is(tmp_path):
    """Labels from a list may be empty or end with a space."""
    domain, path = Domain(["a ", "a", "", "\ufeffb"], separate_labels=True), tmp_path / "labels.txt"
    domain.save_labels(path)
    bare = Domain.from_json(domain.to_json())
    assert bare.attach(path).labels == domain.labels


def test_a_label_file_for_a_plan_that_lies_about_its_size_is_refused(label_file, tmp_path):
    path = tmp_path / "plan.json"
    record = make_plan("grr", Domain.from_file(label_file), 1).to_json()
    record["domain"]["size"] = 3
    path.write_text(json.dumps(record))
    with pytest.raises(DomainError, match="4 labels"):
        load_plan(path, labels=label_file)


def test_a_label_file_for_a_plan_without_one_is_refused(label_file, tmp_path):
    path = tmp_path / "plan.json"
    for domain in (4, ["a", "b", "c"]):
        make_plan("grr", domain, 1).save(path)
        with pytest.raises(DomainError, match=r"names no label file, so .* is not needed; omit it"):
            load_plan(path, labels=label_file)


def test_a_label_with_a_line_break_cannot_stand_in_a_file(tmp_path):
    for label in ("a\nb", "a\r", "\n"):
        with pytest.raises(DomainError, match="line break"):
            Domain([label, "x"]).save_labels(tmp_path / "labels.txt")
        with pytest.raises(DomainError, match="line break"):
            Domain([label, "x"], separate_labels=True)
        assert Domain([label, "x"]).index(label) == 0


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        (0, "between 2"),
        (1, "between 2"),
        (-5, "between 2"),
        (2**30 + 1, "between 2"),
        ([], "between 2"),
        (["only"], "between 2"),
        (["a", "b", "a"], "occurs twice"),
        (["a", 1], "must be text"),
        (["a", None], "must be text"),
        (["a", b"b"], "must be text"),
        (["a", "\ud800"], "Unicode"),
        ("abc", "list of labels"),
        (b"abc", "list of labels"),
        ({"a": 1, "b": 2}, "list of labels, got a table"),
        ({"a", "b"}, "a set, which has no order"),
        (frozenset({"a", "b"}), "a frozenset, which has no order"),
        (pd.DataFrame({"a": ["x"], "b": ["y"]}), "a table"),
        (np.array([["a"], ["b"]]), "not one-dimensional"),
        (np.array(5), "not one-dimensional"),
        (np.ma.array(["a", "b"], mask=[False, True]), "masked"),
        (True, "list of labels"),
        (2.0, "list of labels"),
        (None, "list of labels"),
    ],
)
def test_invalid_domains_are_refused(values, reason):
    with pytest.raises(DomainError, match=reason):
        Domain(values)
    with pytest.raises(DomainError, match=reason):
        make_plan("grr", values, 1)


def test_other_must_be_a_label():
    with pytest.raises(DomainError, match="one of the labels"):
        Domain(["a", "b"], other="c")
    with pytest.raises(DomainError, match="needs a domain of labels"):
        Domain(5, other="c")
    with pytest.raises(ParameterError, match=r"pass other= to Domain\(\)"):
        make_plan("grr", Domain(["a", "b"]), 1, other="b")
    with pytest.raises(DomainError, match="needs a domain of labels"):
        Domain(5, separate_labels=True)


MISSING_VALUES = {
    "none": [None],
    "nan": [float("nan")],
    "numpy's nan": [np.float32("nan")],
    "pandas": pd.Series([None], dtype=object),
    "pandas strings": pd.Series([None], dtype="string"),
    "no date": [pd.NaT],
    "polars": pl.Series([None], dtype=pl.String),
    "pyarrow": pa.array([None], type=pa.string()),
}


@pytest.mark.parametrize("kind", MISSING_VALUES)
def test_other_stands_for_unknown_texts_and_missing_values(kind):
    """As in `sunzi privatize`; without an "other", a missing value is an error like an unknown one."""
    assert Domain(["a", "b"], other="b").indices(["z", "", "a"]).tolist() == [1, 1, 0]
    assert Domain(["a", "b"], other="b").indices(MISSING_VALUES[kind]).tolist() == [1]
    with pytest.raises(DomainError, match="a value is missing"):
        Domain(["a", "b"]).indices(MISSING_VALUES[kind])
    with pytest.raises(DomainError, match=r"a value is missing|not one of the integers"):
        Domain(2).indices(MISSING_VALUES[kind])


def test_an_empty_text_is_missing_unless_it_is_a_label():
    for domain in (Domain(["a", "b"]), Domain(5)):
        with pytest.raises(DomainError, match=r"a value is missing \(null, NaN or empty text\)"):
            domain.index("")
    assert Domain(["", "b"]).index("") == 0
    assert Domain(["", "b"], other="b").indices(["", None]).tolist() == [0, 1]


def test_values_without_an_index_are_located_by_reason():
    texts = ["b", "z", "", None, 3, b"b", float("nan")]
    reasons = [UNKNOWN, MISSING, MISSING, UNUSABLE, UNUSABLE, MISSING]
    for domain in (Domain(["a", "b"]), Domain(["a", "b"], other="a")):
        assert domain.locate(texts).tolist() == [1, *reasons]
    assert Domain(["a", "b"], other="a").replace_by_other(np.array([1, *reasons])).tolist() == [
        *(1, 0, 0, 0, UNUSABLE, UNUSABLE, 0)
    ]
    numbers = [4, 5, -1, None, "", "4", True, 1.0]
    missing = [MISSING, MISSING, UNUSABLE, UNUSABLE, UNUSABLE]
    assert Domain(5).locate(numbers).tolist() == [4, UNKNOWN, UNKNOWN, *missing]
    assert Domain(5).locate(np.array([4, 2**64 - 1], dtype=np.uint64)).tolist() == [4, UNKNOWN]


NOT_LABELS = {
    "integers": [0, 1],
    "an array of integers": np.array([0, 1]),
    "bytes": [b"a"],
    "an array of bytes": np.array([b"a"]),
    "a boolean": [True],
    "a float": [1.5],
    "lists": [["a"]],
    "tuples": [("a", "b")],
    "a text": "a",
    "a scalar array": np.array("a"),
    "a matrix": np.array([["a", "b"], ["a", "a"]]),
    "a masked array": np.ma.array(["a", "b"], mask=[False, True]),
    "a set": {"a"},
    "a dictionary": {"a": "b"},
    "a table of pandas": pd.DataFrame({"a": ["b", "b"]}),
    "a table of polars": pl.DataFrame({"a": ["b", "b"]}),
    "a table of pyarrow": pa.table({"a": ["b", "b"]}),
}


@pytest.mark.parametrize("kind", NOT_LABELS)
@pytest.mark.parametrize("other", [None, "b"])
def test_objects_that_are_not_text_columns_are_refused(kind, other):
    """Iterating over a table would yield its column names, and "other" would swallow every value that is not text."""
    with pytest.raises(DomainError):
        Domain(["a", "b"], other=other).indices(NOT_LABELS[kind])


def test_a_column_may_be_called_columns():
    """Only a table has columns; a Series gives access to its entries by name."""
    assert Domain(5).indices(pd.Series([3, 4], index=["columns", "b"])).tolist() == [3, 4]


def test_a_refused_integer_is_named_as_it_was_given():
    with pytest.raises(DomainError, match="value 18446744073709551615 is not in the domain"):
        Domain(5).indices(np.array([3, 2**64 - 1], dtype=np.uint64))
    with pytest.raises(DomainError, match="value is missing"):
        Domain(5).indices(pd.Series([1, None], dtype="Int64"))


def test_a_domain_is_frozen():
    domain = Domain(["a", "b"], other="b")
    for name, value in (("size", 3), ("labels", ("x", "y")), ("other", None), ("labels_sha256", "")):
        with pytest.raises(AttributeError):
            setattr(domain, name, value)
    assert pickle.loads(pickle.dumps(domain)) == domain


def test_missing_labels_are_never_made_up(label_file):
    """Tables show indices and say so; code that needs a label is refused, as in reporting."""
    plan = make_plan("grr", Domain.from_file(label_file), 1)
    bare = Plan.from_json(plan.canonical)
    estimate = bare.estimate(plan.simulate(["beta"] * 500, seed=1))
    assert estimate.top(1)[0].label == "index 1"
    assert estimate.postprocess("simplex").top(1)[0].label == "index 1"
    assert estimate.to_frame()["label"].tolist() == [f"index {index}" for index in range(4)]
    assert histogram_table(estimate, top=1).columns["label"] == ["index 1"]
    assert bare.domain.search("2", limit=5) == [2]
    with pytest.raises(DomainError, match="labels=PATH"):
        bare.domain.label(1)
    assert plan.domain.label(1) == plan.domain.shown(1) == "beta"
    assert Domain(5).label(1) == Domain(5).shown(1) == "1"


INTEGERS = [3, 0, 4, 1]
INTEGER_COLUMNS = {
    "list": list,
    "tuple": tuple,
    "generator": lambda values: (value for value in values),
    "int64": lambda values: np.array(values, dtype=np.int64),
    "uint8": lambda values: np.array(values, dtype=np.uint8),
    "uint64": lambda values: np.array(values, dtype=np.uint64),
    "int16, strided": lambda values: np.repeat(np.array(values, dtype=np.int16), 2)[::2],
    "objects": lambda values: np.array(values, dtype=object),
    "numpy integers in a list": lambda values: [np.int32(value) for value in values],
    "pandas": pd.Series,
    "pandas, sliced": lambda values: pd.Series([9, *values])[1:],
    "pandas, nullable": lambda values: pd.Series(values, dtype="Int64"),
    "pandas, arrow": lambda values: pd.Series(values, dtype="int32[pyarrow]"),
    "pandas index": pd.Index,
    "polars": lambda values: pl.Series(values, dtype=pl.Int64),
    "polars, small": lambda values: pl.Series(values, dtype=pl.UInt16),
    "polars column": lambda values: pl.DataFrame({"a": pl.Series(values, dtype=pl.Int64)})["a"],
    "pyarrow": lambda values: pa.array(values, type=pa.int64()),
    "pyarrow, small": lambda values: pa.array(values, type=pa.int8()),
    "pyarrow, chunked": lambda values: pa.chunked_array([values[:2], values[2:]], type=pa.int64()),
}


@pytest.mark.parametrize("kind", INTEGER_COLUMNS)
def test_integers_come_in_many_columns(kind):
    domain = Domain(5)
    found = domain.indices(INTEGER_COLUMNS[kind](INTEGERS))
    assert found.dtype == np.int64
    assert found.tolist() == INTEGERS
    assert domain.indices(INTEGER_COLUMNS[kind]([])).tolist() == []
    for wrong in ([0, 5], [7]):
        with pytest.raises(DomainError, match="not in the domain"):
            domain.indices(INTEGER_COLUMNS[kind](wrong))
    plan = make_plan("grr", 5, 1)
    assert plan.client(seed=1).report_batch(INTEGER_COLUMNS[kind](INTEGERS)) == plan.client(seed=1).report_batch(
        INTEGERS
    )


LABEL_COLUMNS = {
    "list": list,
    "generator": lambda values: (value for value in values),
    "numpy": lambda values: np.array(values, dtype=str),
    "numpy objects": lambda values: np.array(values, dtype=object),
    "pandas": lambda values: pd.Series(values, dtype=object),
    "pandas strings": lambda values: pd.Series(values, dtype="str"),
    "pandas arrow strings": lambda values: pd.Series(values, dtype="string[pyarrow]"),
    "pandas categories": lambda values: pd.Series(values, dtype="category"),
    "polars": lambda values: pl.Series(values, dtype=pl.String),
    "polars categories": lambda values: pl.Series(values, dtype=pl.Categorical),
    "pyarrow": lambda values: pa.array(values, type=pa.string()),
    "pyarrow, chunked": lambda values: pa.chunked_array([values], type=pa.string()),
    "pyarrow, large": lambda values: pa.array(values, type=pa.large_string()),
    "pyarrow dictionary": lambda values: pa.array(values, type=pa.string()).dictionary_encode(),
}


@pytest.mark.parametrize("kind", LABEL_COLUMNS)
def test_labels_come_in_many_columns(kind):
    column = LABEL_COLUMNS[kind]
    domain = Domain(["red", "green", "blue"])
    assert domain.indices(column(["blue", "red", "blue"])).tolist() == [2, 0, 2]
    assert domain.indices(column([])).tolist() == []
    with pytest.raises(DomainError, match="'pink'"):
        domain.indices(column(["red", "pink"]))
    tolerant = Domain(["red", "green", "blue"], other="green")
    assert tolerant.indices(column(["blue", "pink", "red"])).tolist() == [2, 1, 0]


NOT_INTEGERS = {
    "booleans": [True, False],
    "floats": [1.0, 2.0],
    "nan": [float("nan")],
    "texts": ["1"],
    "none": [None],
    "a matrix": [[1, 2], [3, 4]],
    "a ragged list": [[1], [2, 3]],
    "a fraction": [Fraction(1)],
    "too large for 64 bits": [2**70],
    "negative": [-1],
    "a text": "12",
    "bytes": b"12",
    "a number": 3,
    "nothing": None,
    "a boolean array": np.array([True, False]),
    "a float array": np.array([1.0, 2.0]),
    "an array of texts": np.array(["1"]),
    "a matrix array": np.zeros((2, 2), dtype=np.int64),
    "a scalar array": np.array(3),
    "a masked array": np.ma.array([1, 2], mask=[False, True]),
    "a set": {1, 2},
    "a dictionary": {1: 2},
    "a table": pd.DataFrame({1: [1, 2]}),
    "a bytearray": bytearray(b"12"),
    "a uint64 beyond 2^63": np.array([2**63 + 1], dtype=np.uint64),
    "dates": np.array(["2020-01-01"], dtype="datetime64[D]"),
    "pandas floats": pd.Series([1.0, 2.0]),
    "pandas booleans": pd.Series([True, False]),
    "pandas with a gap": pd.Series([1, None], dtype="Int64"),
    "pandas texts": pd.Series(["1"]),
    "polars with a gap": pl.Series([1, None]),
    "polars booleans": pl.Series([True]),
    "pyarrow with a gap": pa.array([1, None]),
    "pyarrow, chunked with a gap": pa.chunked_array([[1], [None]]),
    "pyarrow booleans": pa.array([True, False]),
    "pyarrow texts": pa.array(["1"]),
    "pyarrow floats": pa.array([1.0]),
}


@pytest.mark.parametrize("kind", NOT_INTEGERS)
def test_values_that_are_not_integers_of_the_domain_are_refused(kind):
    with pytest.raises(DomainError):
        Domain(5).indices(NOT_INTEGERS[kind])
    with pytest.raises(DomainError):
        make_plan("grr", 5, 1).client().report_batch(NOT_INTEGERS[kind])


@pytest.mark.parametrize("value", [True, 1.0, "1", None, -1, 5, 2**70, [1], np.float64(1), np.bool_(True), (0, 1)])
def test_a_single_value_must_be_an_integer_of_the_domain(value):
    with pytest.raises(DomainError):
        make_plan("grr", 5, 1).client().report(value)


@pytest.mark.parametrize("value", [3, np.int8(3), np.uint64(3), np.int64(3)])
def test_integers_of_numpy_are_integers(value):
    plan = make_plan("grr", np.int64(5), 1)
    assert plan == make_plan("grr", 5, 1)
    assert plan.domain.index(value) == 3


@pytest.mark.parametrize("value", [0, None, b"red", ["red"], "RED", "red ", float("nan")])
def test_a_label_is_matched_exactly(value):
    with pytest.raises(DomainError):
        make_plan("grr", ["red", "green"], 1).client().report(value)


def test_a_compressed_label_file(tmp_path):
    path = tmp_path / "labels.txt.gz"
    path.write_bytes(gzip.compress(b"red\ngreen\n"))
    domain = Domain.from_file(path)
    assert domain.labels == ("red", "green")
    assert Domain.from_json(domain.to_json()).attach(path).labels == ("red", "green")
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(DomainError, match="damaged or truncated"):
        Domain.from_file(path)


def test_labels_are_found_without_case():
    labels = Domain(["Äpfel", "Pflaumen", "Kirschen"])
    assert labels.search("äPF", 5) == [0]
    assert labels.search("p", 1) == [0]
    assert labels.search("x", 5) == []
    numbers = Domain(10)
    assert numbers.search("7", 5) == [7]
    assert numbers.search("10", 5) == numbers.search("seven", 5) == numbers.search("-1", 5) == []
