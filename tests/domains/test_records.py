"""Domains of records, beside those of numbers and dates."""

from datetime import date

import numpy as np
import pytest

import sunzi
from sunzi import Domain, OrderedDomain, RecordDomain
from sunzi.client.domains.labels import read_domain
from sunzi.client.errors import DomainError, PlanError
from sunzi.domains.labels import UNKNOWN


@pytest.fixture
def times():
    return OrderedDomain(0, 1000, 8, unit="ms")


@pytest.fixture
def records():
    return RecordDomain({"country": ["DE", "FR", "IT"], "crashed": Domain(["no", "yes", "?"], other="?")})


def test_one_value_has_the_index_that_it_has_among_many(records):
    """Single values take a quicker way."""
    bins = OrderedDomain(-1.7, 3.1, 1 << 20)
    numbers = [
        *np.random.default_rng(1).uniform(-1.7, 3.1, 500).tolist(),
        *bins.edges[::9999].tolist(),
        -1.7,
        3.1,
        0,
        3,
    ]
    numbers = [number for number in numbers if number <= 3.1]
    assert [bins.index(number) for number in numbers] == bins.indices(numbers).tolist()
    each = [
        {"country": country, "crashed": crashed} for country in ("FR", "IT") for crashed in ("no", "?", None, "new")
    ]
    assert [records.index(record) for record in each] == records.indices(each).tolist()


def test_labels_of_attributes_are_in_the_plan():
    with pytest.raises(DomainError, match="the labels of attribute 'a' must be in the plan"):
        RecordDomain({"a": Domain(["x", "y"], separate_labels=True)})


def test_records_are_mixed_radix_numbers(records):
    assert records.size == 9
    values = [{"country": country, "crashed": crashed} for country in ("DE", "FR", "IT") for crashed in ("no", "yes")]
    assert records.indices(values).tolist() == [0, 1, 3, 4, 6, 7]
    assert records.digits(7) == (2, 1)
    assert records.shown(7) == "country IT, crashed yes"
    columns = {"country": ["FR", "IT"], "crashed": ["no", "yes"], "unused": [1, 2]}
    assert records.indices(columns).tolist() == [3, 7]


def test_missing_attributes_are_declared_or_refused(records):
    assert records.index({"country": "DE"}) == 2
    assert records.index({"country": "DE", "crashed": None}) == 2
    with pytest.raises(DomainError, match="attribute 'country': a value is missing"):
        records.index({"crashed": "no"})


def test_a_record_that_must_be_in_the_domain_gets_no_other(records):
    assert records.exact_index({"country": "DE", "crashed": "?"}) == 2
    located = records.locate([{"country": "FR", "crashed": "no"}, {"country": "FR", "crashed": "maybe"}])
    assert located.tolist() == [3, UNKNOWN]
    with pytest.raises(DomainError, match="attribute 'crashed': label 'maybe' is not in the domain"):
        records.exact_index({"country": "DE", "crashed": "maybe"})
    with pytest.raises(DomainError, match="attribute 'crashed': a value is missing"):
        records.exact_index({"country": "DE"})


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([{"country": "DE", "version": "1"}], "there is no attribute 'version'; the attributes are country, crashed"),
        ([{"country": "ES"}], "attribute 'country': label 'ES' is not in the domain"),
        (["DE"], "a record must be a mapping"),
        ("DE", "records must be a list of mappings"),
        ({"country": ["DE"]}, "there is no column 'crashed'"),
        ({"country": ["DE"], "crashed": ["no", "yes"]}, "different lengths"),
    ],
)
def test_wrong_records_are_refused(records, values, message):
    with pytest.raises(DomainError, match=message):
        records.indices(values)


def test_frames_of_any_library_are_tables(records):
    pandas, polars, arrow = (pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow"))
    columns = {"country": ["FR", "IT"], "crashed": ["no", "yes"]}
    struct = arrow.array([{"country": "FR", "crashed": "no"}, {"country": "IT", "crashed": "yes"}])
    for table in (pandas.DataFrame(columns), polars.DataFrame(columns), arrow.table(columns), struct):
        assert records.indices(table).tolist() == [3, 7]


def test_both_kinds_come_back_from_json(records, times):
    for domain in (
        records,
        times,
        OrderedDomain(-0.5, 2.25, 4, clamp=True),
        RecordDomain({"ms": times, "no": ["a", "b"]}),
    ):
        found = read_domain(domain.to_json(), sunzi.Plan.domain_kind)
        assert found == domain
        assert type(found) is type(domain)
        assert type(domain).from_json(domain.to_json()) == domain
        assert hash(found) == hash(domain)


def test_too_many_combinations_are_refused():
    with pytest.raises(DomainError, match=r"more than 2\^53"):
        RecordDomain({f"a{number}": [str(value) for value in range(10)] for number in range(16)})


@pytest.mark.parametrize(
    "record",
    [
        {"size": 4, "attributes": {"a": 2}},
        {"size": 5, "attributes": [{"name": "a", "domain": {"size": 4}}]},
        {"size": 4, "attributes": [{"name": "a", "domain": {"size": 2}}, {"name": "a", "domain": {"size": 2}}]},
        {"size": 4, "attributes": [{"name": "a"}]},
        {"size": 1, "attributes": []},
        {"size": 4, "attributes": [{"name": "", "domain": {"size": 4}}]},
    ],
)
def test_wrong_records_in_plans_are_refused(record):
    with pytest.raises(PlanError):
        read_domain(record, sunzi.Plan.domain_kind)


def test_names_of_tables_are_checked(records):
    assert records.numbers(["crashed", "country"]) == (0, 1)
    for names, message in (
        (["version"], "no attribute"),
        (["country", "country"], "different"),
        ([], "at least one attribute, got none"),
    ):
        with pytest.raises(DomainError, match=message):
            records.numbers(names)


def test_a_number_or_date_finds_its_bin_and_parts_of_a_record_its_cells(times, records):
    assert times.search("130", 5) == [1]
    assert times.search("1001", 5) == times.search("ms", 5) == times.search("", 5) == []
    assert OrderedDomain(date(2026, 1, 1), date(2026, 1, 9), 8).search("2026-01-03", 5) == [2]
    assert records.search("country fr", 5) == [3, 4, 5]
    assert records.search("crashed yes, FR", 5) == [4]
    assert records.search("country", 2) == [0, 1]


def test_examples_have_their_index(times, records):
    dates = sunzi.OrderedDomain(date(2024, 1, 1), date(2024, 3, 1), 60)
    for domain in (times, records, dates, sunzi.Domain(5), sunzi.Domain(["a", "b"])):
        for index in range(domain.size):
            assert domain.index(domain.example(index)) == index
