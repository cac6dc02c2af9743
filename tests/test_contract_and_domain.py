"""Contracts, domains and plans: what is written is what is read, and what cannot be kept is refused with a reason."""

import copy
import hashlib
import json
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sunzi.contract import Contract, canonical_json, parse_json
from sunzi.domain import Domain
from sunzi.errors import DomainError, ParameterError, PlanError, PrivacyError, SunziError
from sunzi.plan import Plan, load_plan, make_plan
from sunzi.protocols.catalogue import catalogue

LABELS = st.lists(st.text(st.characters(codec="utf-8"), max_size=12), min_size=2, max_size=12, unique=True)
QUOTES = ['"', "'", "\\", "\n", "\r\n", "\t", "", " ", "a\0b", "\x1f\x7f", "null", "0"]
SCRIPTS = [
    "\u00e9",
    "e\u0301",
    "日本語",
    "\u05d0\u200f",
    "\u2028",
    "\ufeff",
    "\U0001f3f3\ufe0f\u200d\U0001f308",
    "\U0010ffff",
]
DOMAINS = {"2": 2, "3": 3, "17": 17, "two labels": ["yes", "no"], "odd labels": QUOTES + SCRIPTS}


@pytest.mark.parametrize("name", catalogue())
@pytest.mark.parametrize("domain", DOMAINS)
@pytest.mark.parametrize("epsilon", ["1/100", 1, 12])
def test_plans_round_trip_through_files(name, domain, epsilon, tmp_path):
    plan = make_plan(name, DOMAINS[domain], epsilon)
    path = tmp_path / "plan.json"
    plan.save(path)
    loaded = load_plan(path)
    assert loaded == plan
    assert loaded.fingerprint == plan.fingerprint == hashlib.sha256(loaded.contract.canonical).hexdigest()
    assert loaded.domain == plan.domain
    assert (loaded.epsilon, loaded.report_bits) == (plan.epsilon, plan.report_bits)
    values = list(plan.domain.labels or range(plan.domain.size))
    reports = plan.client(seed=1).report_many(values)
    assert loaded.client(seed=1).report_many(values) == reports
    assert loaded.tally(reports) == plan.tally(reports)


@settings(max_examples=60)
@given(LABELS, st.data())
def test_labels_may_be_any_text(labels, data):
    other = data.draw(st.none() | st.sampled_from(labels))
    plan = make_plan("grr", labels, 1, other=other)
    record = plan.contract.to_json()
    for text in (plan.contract.canonical, json.dumps(record), json.dumps(record, indent=2, ensure_ascii=False)):
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
    """Composed and decomposed é look alike and are two labels."""
    domain = Domain(["\u00e9", "e\u0301"])
    assert domain.index("e\u0301") == 1


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({}, b"{}"),
        ([], b"[]"),
        ({"b": 1, "a": 2, "A": 3, "_": 4}, b'{"A":3,"_":4,"a":2,"b":1}'),
        ([True, False, -5, 0, 2**53 - 1], b"[true,false,-5,0,9007199254740991]"),
        # The text of RFC 8785, section 3.2.2, and the escapes of section 3.2.2.2.
        ("\u20ac$\u000f\u000aA'\u0042\u0022\u005c\\\"/", '"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"'.encode()),
        ("\b\t\n\f\r", b'"\\b\\t\\n\\f\\r"'),
        ("\x00\x1f\x7f\x80", b'"\\u0000\\u001f\x7f\xc2\x80"'),
        ("</script>", b'"</script>"'),
        ("😂\u2028", b'"\xf0\x9f\x98\x82\xe2\x80\xa8"'),
        ({"nested": [{"z": [], "a": {}}]}, b'{"nested":[{"a":{},"z":[]}]}'),
    ],
)
def test_the_canonical_form(value, expected):
    assert canonical_json(value) == expected
    assert json.loads(expected) == value


@pytest.mark.parametrize(
    "value",
    [1.0, 0.5, float("nan"), None, 2**53, -(2**53), {"é": 1}, {1: 1}, "\ud800", ["\udfff"], b"a", (1,), {"a": {2}}],
)
def test_what_has_no_canonical_form_is_refused(value):
    with pytest.raises(PlanError):
        canonical_json(value)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"\xff",
        b"\xef\xbb\xbf{}",
        b'{"a":1,"a":1}',
        b'{"a":1,"\\u0061":1}',
        b"NaN",
        b"Infinity",
        b"{} {}",
        b"[1,]",
        b"'a'",
        b"01",
        b"9" * 5000,
        b"[" * 100_000,
    ],
)
def test_text_that_is_not_strict_json_is_refused(text):
    with pytest.raises(PlanError):
        parse_json(text)
    with pytest.raises(PlanError):
        Plan.from_json(text)


def leaves(value, path=()):
    """The places of a JSON value, inner ones included."""
    yield path
    if isinstance(value, dict):
        for key, item in value.items():
            yield from leaves(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from leaves(item, (*path, index))


def replaced(value, path, new):
    if not path:
        return new
    changed = copy.copy(value)
    changed[path[0]] = replaced(value[path[0]], path[1:], new)
    return changed


def removed(value, path):
    changed = copy.copy(value)
    if len(path) > 1:
        changed[path[0]] = removed(value[path[0]], path[1:])
    else:
        del changed[path[0]]
    return changed


WRONG = [None, True, False, 0, 1, 2, -1, 3, 7, 2**53, 1.5, 1.0, "", "1", "2", "x", "é", [], [0], [1, 1], {}, {"a": 1}]
MUTATED = {
    "grr": make_plan("grr", ["a", "b", "c"], 1, other="c"),
    "ss": make_plan("ss", 9, 1),
    "ss-compact": make_plan("ss-compact", 11, 1, classes=4),
    "pgr": make_plan("pgr", 20, 1, order=4),
    "rappor": make_plan("rappor", 3, 1),
    "oue": make_plan("oue", 3, "1/2"),
    "mss": make_plan("mss", 12, 1, moduli=[5, 11]),
    "mss-compact": make_plan("mss-compact", 12, 1, moduli=[7, 13]),
    "label file": make_plan("grr", Domain(["a", "b"], separate_labels=True), 1),
}


@pytest.mark.parametrize("name", MUTATED)
def test_a_changed_plan_is_refused_or_is_another_plan_to_the_letter(name):
    """Nothing is ignored, guessed or repaired: what is accepted says exactly what was written."""
    record = MUTATED[name].contract.to_json()
    places = list(leaves(record))
    changed = [replaced(record, path, new) for path in places for new in WRONG]
    changed += [removed(record, path) for path in places if path]
    objects = [path for path in places if isinstance(value_at(record, path), dict)]
    changed += [replaced(record, path, {**value_at(record, path), "x": 1}) for path in objects]
    accepted = 0
    for candidate in changed:
        text = json.dumps(candidate)
        try:
            plan = Plan.from_json(text)
        except PlanError:
            continue
        accepted += 1
        assert plan.contract.canonical == canonical_json(json.loads(text))
        assert plan.fingerprint != MUTATED[name].fingerprint or candidate == record
    assert accepted < len(changed) / 20


def value_at(value, path):
    for step in path:
        value = value[step]
    return value


@pytest.mark.parametrize("name", MUTATED)
def test_thresholds_one_off_are_refused(name):
    record = MUTATED[name].contract.to_json()
    tried = 0
    for path in leaves(record):
        if path and str(path[-1]).endswith("threshold"):
            for step in (-1, 1, 1 << 32):
                tried += 1
                wrong = replaced(record, path, str(int(value_at(record, path)) + step))
                with pytest.raises(PrivacyError):
                    Plan.from_json(json.dumps(wrong))
            with pytest.raises(PlanError):
                Plan.from_json(json.dumps(replaced(record, path, "0" + value_at(record, path))))
    assert tried


@pytest.mark.parametrize(
    "epsilon",
    ["2/4", "2/1", "0.5", "1e0", "0", "-1", "+1", " 1", "1 ", "01", "33", "1/0", "1_0", "\u0662", 1, "", "1e999999999"],
)
def test_epsilon_has_one_spelling(epsilon):
    record = MUTATED["grr"].contract.to_json() | {"epsilon": epsilon}
    with pytest.raises(PlanError):
        Plan.from_json(json.dumps(record))


def test_a_plan_of_an_unknown_protocol_version_or_format_is_refused():
    record = MUTATED["grr"].contract.to_json()
    for change in ({"protocol": "magic"}, {"version": 2}, {"version": True}, {"version": "1"}, {"format": "sunzi"}):
        with pytest.raises(PlanError):
            Plan.from_json(json.dumps(record | change))


def test_errors_of_files_name_the_file(tmp_path):
    path = tmp_path / "broken.json"
    path.write_text("{}")
    with pytest.raises(PlanError, match=r"broken\.json"):
        load_plan(path)
    record = MUTATED["grr"].contract.to_json()
    record["parameters"]["response"]["threshold"] = "5"
    path.write_text(json.dumps(record))
    with pytest.raises(PrivacyError, match=r"broken\.json"):
        load_plan(path)


@pytest.fixture
def label_file(tmp_path):
    path = tmp_path / "labels.txt"
    Domain(["alpha", "beta", "γ", "other"]).save_labels(path)
    return path


def test_labels_in_a_file_of_their_own(label_file, tmp_path):
    """The plan names the labels by their hash; without the file it cannot turn labels into indices."""
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
    reports = loaded.client(seed=1).report_many(["alpha", "γ"])
    assert bare.tally(reports) == loaded.tally(reports)
    assert loaded.estimate(loaded.tally(reports)).top(1)[0].label in domain.labels


@pytest.mark.parametrize(
    "content",
    [
        b"alpha\nbeta\n\xce\xb3\n",
        b"alpha\nbeta\n\xce\xb3\nother",
        b"beta\nalpha\n\xce\xb3\nother\n",
        b"alpha\nbeta\n\xce\xb3\nother\n\n",
        b"\xef\xbb\xbfalpha\nbeta\n\xce\xb3\nother\n",
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


def test_windows_line_ends_are_the_same_labels(label_file, tmp_path):
    path, windows = tmp_path / "plan.json", tmp_path / "windows.txt"
    make_plan("grr", Domain.from_file(label_file), 1).save(path)
    windows.write_bytes(label_file.read_bytes().replace(b"\n", b"\r\n"))
    assert load_plan(path, labels=windows).domain.labels == ("alpha", "beta", "γ", "other")


def test_a_label_file_for_a_plan_that_lies_about_its_size_is_refused(label_file, tmp_path):
    path = tmp_path / "plan.json"
    record = make_plan("grr", Domain.from_file(label_file), 1).contract.to_json()
    record["domain"]["size"] = 3
    path.write_text(json.dumps(record))
    with pytest.raises(DomainError, match="4 labels"):
        load_plan(path, labels=label_file)


def test_a_label_file_for_a_plan_without_one_is_refused(label_file, tmp_path):
    path = tmp_path / "plan.json"
    for domain in (4, ["a", "b", "c"]):
        make_plan("grr", domain, 1).save(path)
        with pytest.raises(DomainError, match=r"names no label file, so .* is not needed; leave it out"):
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
        ({"a": 1, "b": 2}, "list of labels"),
        (True, "list of labels"),
        (2.0, "list of labels"),
        (None, "list of labels"),
    ],
)
def test_what_is_no_domain_is_refused(values, reason):
    with pytest.raises(DomainError, match=reason):
        Domain(values)
    with pytest.raises(DomainError, match=reason):
        make_plan("grr", values, 1)


def test_other_must_be_a_label():
    with pytest.raises(DomainError, match="one of the labels"):
        Domain(["a", "b"], other="c")
    with pytest.raises(DomainError, match="needs a domain of labels"):
        Domain(5, other="c")
    with pytest.raises(ParameterError, match="Domain itself"):
        make_plan("grr", Domain(["a", "b"]), 1, other="b")
    assert Domain(["a", "b"], other="b").indices(["z", None, 3, "a"]).tolist() == [1, 1, 1, 0]


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
    assert plan.client(seed=1).report_many(INTEGER_COLUMNS[kind](INTEGERS)) == plan.client(seed=1).report_many(INTEGERS)


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
def test_what_is_not_an_integer_of_the_domain_is_refused(kind):
    with pytest.raises(DomainError):
        Domain(5).indices(NOT_INTEGERS[kind])
    with pytest.raises(DomainError):
        make_plan("grr", 5, 1).client().report_many(NOT_INTEGERS[kind])


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


def test_a_client_may_cap_epsilon_and_pin_the_plan():
    plan = make_plan("grr", 5, "3/2")
    for cap in (2, 1.5, "3/2", Fraction(3, 2)):
        assert plan.client(max_epsilon=cap).report(1)
    for cap in (1, 1.4999, "1/2"):
        with pytest.raises(PrivacyError, match="accepts at most"):
            plan.client(max_epsilon=cap)
    for pin in (plan.fingerprint, plan.fingerprint.upper(), bytes.fromhex(plan.fingerprint)):
        assert plan.client(fingerprint=pin).report(1)
    for pin in (make_plan("grr", 6, "3/2").fingerprint, bytes(32), "", plan.fingerprint[:16], "not hexadecimal"):
        with pytest.raises(PrivacyError, match="pinned"):
            plan.client(fingerprint=pin)
    with pytest.raises(ParameterError, match="epsilon"):
        plan.client(max_epsilon="much")


def test_equal_plans_have_equal_fingerprints_and_others_do_not():
    plans = [make_plan(name, size, epsilon) for name in catalogue() for size in (5, 6) for epsilon in (1, 2)]
    assert len({plan.fingerprint for plan in plans}) == len(plans)
    assert len(set(plans)) == len(plans)
    assert make_plan("grr", ["a", "b"], 1) != make_plan("grr", ["b", "a"], 1)
    assert make_plan("grr", ["a", "b"], 1) != make_plan("grr", 2, 1)
    assert make_plan("grr", ["a", "b"], 1) != make_plan("grr", ["a", "b"], 1, other="b")
    assert make_plan("grr", 5, 0.5) == make_plan("grr", np.int32(5), "1/2")


def test_a_contract_is_the_same_whoever_reads_it():
    contract = MUTATED["mss"].contract
    again = Contract.from_json(json.loads(json.dumps(contract.to_json(), sort_keys=True)))
    assert again.fingerprint == contract.fingerprint
    assert again == contract


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("grr", {"classes": 3}),
        ("ss", {"block_size": 0}),
        ("ss", {"block_size": 20}),
        ("ss", {"code": "morse"}),
        ("ss-compact", {"points": 23}),
        ("ss-compact", {"classes": 0}),
        ("ss-compact", {"classes": 5, "points": 23}),
        ("ss-compact", {"classes": 4, "points": 25}),
        ("ss-compact", {"classes": 4, "points": 13}),
        ("pgr", {"order": 6}),
        ("pgr", {"order": 1}),
        ("pgr", {"order": 0}),
        ("mss", {"moduli": [5, 9, 11]}),
        ("mss", {"moduli": [5, 5, 31]}),
        ("mss", {"moduli": [5, 7]}),
        ("mss", {"moduli": []}),
        ("mss", {"moduli": [23], "count": 3}),
        ("mss", {"count": 0}),
        ("mss", {"count": 1000}),
        ("mss-compact", {"moduli": [4, 23]}),
        ("rappor", {"bits": 8}),
        ("magic", {}),
    ],
)
def test_options_without_sense_are_refused_with_a_reason(name, options):
    with pytest.raises(SunziError) as refusal:
        make_plan(name, 20, 1, **options)
    assert len(str(refusal.value)) > 10


@pytest.mark.parametrize("name", catalogue())
@pytest.mark.parametrize("epsilon", [0.01, 12, 32])
@pytest.mark.parametrize("size", [2, 3])
def test_the_smallest_domains_and_extreme_budgets(name, size, epsilon):
    """Works from plan to estimate; n = 2000 is little at ε = 0.01, so only the form of the result is judged there."""
    plan = make_plan(name, size, epsilon)
    values = np.arange(2000) % size
    estimate = plan.estimate(plan.tally(plan.client(seed=3).report_many(values)))
    assert estimate.frequencies.shape == (size,)
    assert np.all(np.isfinite(estimate.frequencies))
    assert np.all(estimate.standard_errors >= 0)
    if epsilon >= 12:
        assert np.allclose(estimate.frequencies, np.bincount(values) / 2000, atol=0.05)
    assert 0 < plan.attackability <= 1


@pytest.mark.parametrize(
    ("name", "options"), [("grr", {}), ("ss-compact", {}), ("pgr", {}), ("mss-compact", {"count": 3})]
)
def test_ten_million_values(name, options):
    """A plan, a thousand reports and their tally, in the memory of a thousand reports."""
    plan = make_plan(name, 10_000_000, 1, **options)
    values = np.random.default_rng(4).integers(0, 10_000_000, 1000)
    tally = plan.tally(plan.client(seed=4).report_many(values))
    assert tally.reports == 1000
    assert tally.counters.stored <= 1000
    assert plan.report_bits <= 30
    assert Plan.from_json(plan.contract.canonical) == plan
    assert 1e-7 < plan.attackability < 3e-7


@pytest.mark.parametrize(("name", "size"), [("rappor", 2**24 + 1), ("oue", 2**30), ("ss", 2**24 + 1), ("pgr", 2**30)])
def test_domains_too_large_for_a_protocol_are_refused_with_a_way_out(name, size):
    """PGR reaches 2^31 points; at ε = 12 its field is so large that no geometry below that holds the domain."""
    epsilon = 12 if name == "pgr" else 1
    with pytest.raises(SunziError, match="use a compact"):
        make_plan(name, size, epsilon)
