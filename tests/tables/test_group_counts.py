"""Counting by group: keys of every type, and bounded memory."""

import datetime
import math
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sunzi
from sunzi.client.errors import ParameterError
from sunzi.tables import Refused, Sifted, group_counts
from sunzi.tables.group_counts import TallyRequest

PLAN = sunzi.make_plan("grr", 60, 1)
REPORTS = PLAN.client(seed=1).reports([index % 60 for index in range(64)])
DAY = datetime.date(2026, 11, 15)
NOON = datetime.datetime(2026, 11, 15, 12, tzinfo=datetime.UTC)


def request(by):
    return TallyRequest(PLAN, "report", by=tuple(by))


VALUES = {
    "texts": (["a", None, "", "ü", "a"], pa.string()),
    "large texts": (["a", None, "b"], pa.large_string()),
    "text views": (["a", None, "a longer text than twelve bytes"], pa.string_view()),
    "bytes": ([b"a", None, b"", b"\xff"], pa.binary()),
    "byte views": ([b"a", None, b"\xff"], pa.binary_view()),
    "fixed bytes": ([b"ab", None, b"cd"], pa.binary(2)),
    "integers": ([1, None, -(2**63), 2**63 - 1], pa.int64()),
    "small integers": ([1, None, -128], pa.int8()),
    "unsigned": ([2**64 - 1, None, 0], pa.uint64()),
    "truths": ([True, None, False], pa.bool_()),
    "days": ([DAY, None], pa.date32()),
    "moments": ([NOON, None], pa.timestamp("us", "UTC")),
    "local moments": ([NOON.replace(tzinfo=None), None], pa.timestamp("ms")),
    "times": ([datetime.time(1, 2), None], pa.time64("us")),
    "durations": ([datetime.timedelta(1), None], pa.duration("s")),
    "decimals": ([Decimal("1.10"), None, Decimal("-2.25")], pa.decimal128(9, 2)),
    "floats": ([1.5, None, math.inf], pa.float64()),
    "nothing": ([None], pa.null()),
    "dictionary": (["a", None, "b"], pa.dictionary(pa.int8(), pa.string())),
}


def batches(table, size=None):
    return table.to_batches(max_chunksize=size)


def table_of(groups, kind, name="group"):
    values = pa.array(groups, kind)
    return pa.table({name: values, "report": pa.array(REPORTS[: len(groups)], pa.binary())})


@pytest.mark.parametrize("case", VALUES)
def test_groups_of_every_type(case):
    few, kind = VALUES[case]
    groups = [few[index % len(few)] for index in range(17)]
    expected = {}
    for group, report in zip(groups, REPORTS, strict=False):
        expected.setdefault((group,), []).append(report)
    for size in (None, 1, 5):
        found = group_counts.count_groups(request(["group"]), batches(table_of(groups, kind), size))
        assert {key: sifted.tally for key, sifted in found.items()} == {
            key: PLAN.tally(reports) for key, reports in expected.items()
        }


@pytest.mark.parametrize(
    "kind", [pa.list_(pa.int8()), pa.struct([("a", pa.int8())]), pa.map_(pa.string(), pa.int8())], ids=str
)
def test_types_that_name_no_group_are_refused(kind):
    with pytest.raises(ParameterError, match=r"the column 'group' holds .*, by which rows cannot be grouped"):
        group_counts.count_groups(request(["group"]), batches(table_of([None, None], kind)))


def test_values_that_python_cannot_say_are_refused():
    far = pa.array([2**60], pa.int64()).cast(pa.timestamp("s"))
    with pytest.raises(ParameterError, match="the column 'group' holds a value that cannot name a group"):
        group_counts.count_groups(request(["group"]), batches(pa.table({"group": far, "report": REPORTS[:1]})))
    ends = pa.py_buffer(np.array([0, 1], dtype=np.int32))
    no_text = pa.Array.from_buffers(pa.string(), 1, [None, ends, pa.py_buffer(b"\xff")])
    with pytest.raises(ParameterError, match="the column 'group' holds a value that cannot name a group"):
        group_counts.count_groups(request(["group"]), batches(pa.table({"group": no_text, "report": REPORTS[:1]})))


def test_nan_is_one_group_and_zero_has_no_sign():
    table = table_of([math.nan, 0.0, math.nan, -0.0, -math.nan, None], pa.float64())
    for size in (None, 1, 2):
        found = group_counts.count_groups(request(["group"]), batches(table, size))
        assert sorted((str(key), sifted.tally.reports) for key, sifted in found.items()) == [
            ("(0.0,)", 2),
            ("(None,)", 1),
            ("(nan,)", 3),
        ]
    total = {}
    group_counts.add_groups(total, [((float("nan"),), Sifted(PLAN.empty_tally())) for _ in range(3)])
    assert len(total) == 1


@pytest.mark.parametrize("name", ["a.b", ".x", "[0]", "", "`", "report id", "ü", "a/b", "../x", "*"])
def test_names_are_taken_as_they_are(name):
    found = group_counts.count_groups(request([name]), batches(table_of(["a", "b", "a"], pa.string(), name)))
    assert {key: sifted.tally.reports for key, sifted in found.items()} == {("a",): 2, ("b",): 1}


ROWS = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", None]),
        st.sampled_from([0, 1, None]),
        st.sampled_from([*REPORTS[:5], None, b"", b"\xff", b"too long"]),
    ),
    max_size=30,
)


@given(ROWS, st.integers(1, 31))
def test_groups_equal_the_slow_way(rows, size):
    texts, numbers, cells = ([row[place] for row in rows] for place in range(3))
    table = pa.table(
        {
            "text": pa.array(texts, pa.string()),
            "n": pa.array(numbers, pa.int32()),
            "report": pa.array(cells, pa.binary()),
        }
    )
    found = group_counts.count_groups(request(["text", "n"]), batches(table, size))
    assert set(found) == {(text, number) for text, number, _ in rows}
    for key, sifted in found.items():
        mine = [cell for *group, cell in rows if tuple(group) == key]
        good = [cell for cell in mine if cell in REPORTS[:5]]
        assert sifted.tally == PLAN.tally(good)
        assert sifted.refused.total == len(mine) - len(good)
    reverse = group_counts.count_groups(request(["text", "n"]), batches(table.take(np.arange(len(rows))[::-1])))
    assert reverse == found


@pytest.mark.slow
def test_more_groups_than_sixteen_bits_number():
    groups = np.arange(70_000)
    table = pa.table({"group": groups, "cell": np.arange(70_000) * 3})
    found = {key: column.to_pylist() for key, column in group_counts.split_by_group(table, ["group"], "cell")}
    assert found == {(group,): [group * 3] for group in range(70_000)}


def test_an_empty_table_has_no_groups():
    empty = table_of([], pa.string())
    assert list(group_counts.split_by_group(empty, ["group"], "report")) == []
    assert group_counts.count_groups(request(["group"]), batches(empty)) == {}
    assert group_counts.count_groups(request([]), []) == {}


def test_rows_in_order_of_a_number():
    numbers = np.array([2, 0, 2, 5, 0])
    order, ends = group_counts.sort_by_number(numbers, 6)
    assert order.tolist() == [1, 4, 0, 2, 3]
    assert ends.tolist() == [0, 2, 2, 4, 4, 4, 5]


def test_without_an_id_all_cells_are_refused():
    table = table_of(["a", "b", "a"], pa.string())
    found = dict(group_counts.refuse_without_id(request(["group"]), table))
    shown = tuple(sorted({REPORTS[0].hex(), REPORTS[2].hex()}))
    assert found[("a",)] == Sifted(PLAN.empty_tally(), Refused({"without an id": 2}, {"without an id": shown}))


def sizes(found):
    return [table.num_rows for table in found]


def test_pieces_are_of_bounded_size(monkeypatch):
    """Small batches are joined and large ones split; no row is lost, and the order is kept."""
    monkeypatch.setattr(group_counts, "_MOST_ROWS", 100)
    table = pa.table({"n": np.arange(1000)})
    for size in (1, 7, 99, 100, 101, 250, 1000):
        pieces = list(group_counts.bounded_tables(batches(table, size)))
        assert max(sizes(pieces)) <= 100
        assert len(pieces) <= 20
        assert pa.concat_tables(pieces).column("n").to_pylist() == list(range(1000))


def test_pieces_are_of_bounded_bytes(monkeypatch):
    monkeypatch.setattr(group_counts, "_MOST_BYTES", 10_000)
    table = pa.table({"report": pa.array([bytes(1000)] * 100)})
    for size in (1, 3, 100):
        pieces = list(group_counts.bounded_tables(batches(table, size)))
        assert max(piece.nbytes for piece in pieces) <= 10_000
        assert sum(sizes(pieces)) == 100
    huge = pa.table({"report": pa.array([bytes(50_000)] * 3)})
    assert sizes(group_counts.bounded_tables(batches(huge))) == [1, 1, 1]


def test_pieces_of_nothing():
    assert list(group_counts.bounded_tables([])) == []
    assert list(group_counts.bounded_tables(batches(pa.table({"n": pa.array([], pa.int8())})))) == []
    assert list(group_counts.bounded_tables([pa.record_batch({"n": pa.array([], pa.int8())})] * 3)) == []


def test_pieces_have_plain_columns():
    table = pa.table({"a": pa.array(["x", "y"]).dictionary_encode(), "b": pa.array([b"x", None], pa.binary_view())})
    (piece,) = group_counts.bounded_tables(batches(table))
    assert piece.schema.types == [pa.string(), pa.large_binary()]
    assert piece.to_pydict() == table.to_pydict()


def test_times_differ_where_clocks_go_back():
    """Half past two occurs twice that night in Berlin, and Python treats the two times as equal."""
    twice = [datetime.datetime(2026, 10, 25, hour, 30, tzinfo=datetime.UTC) for hour in (0, 1, 0)]
    table = pa.table({"group": pa.array(twice, pa.timestamp("us", "Europe/Berlin")), "report": REPORTS[:3]})
    found = group_counts.count_groups(request(["group"]), batches(table))
    assert {key: sifted.tally for key, sifted in found.items()} == {
        (twice[0],): PLAN.tally([REPORTS[0], REPORTS[2]]),
        (twice[1],): PLAN.tally([REPORTS[1]]),
    }
