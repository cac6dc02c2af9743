"""Every id counts once, and the counted rows are those that a few lines of plain Python choose."""

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sunzi
from sunzi.tables import Refused, Sifted, deduplication
from sunzi.tables.group_counts import TallyRequest, add_groups

PLAN = sunzi.make_plan("grr", 60, 1)
WIDE = sunzi.make_plan("mss", 60, 1)
REPORTS = sorted(set(PLAN.client(seed=1).reports(list(range(30)))))[:5]
BATCH = PLAN.client(seed=2).report_batch([1, 2, 3])
CELLS = [*REPORTS, BATCH, None, b"", b"\xff", b"\x00\x00", BATCH[:-1]]
GOOD = {*REPORTS, BATCH}


def naive(rows, grouped=True):
    """The groups' good cells, bad cells and repeated rows, by the rules of :mod:`sunzi.tables.deduplication`."""
    by_id, found = {}, {}

    def group(key):
        return found.setdefault((key,) if grouped else (), ([], [], [0]))

    for identifier, cell, key in rows:
        if identifier is None:
            group(key)[1].append(("without an id", cell))
        else:
            by_id.setdefault(identifier, []).append((cell, key))
    for copies in by_id.values():
        cell, key = min(copies, key=lambda row: (row[0] not in GOOD, *map(null_first, row)))
        good, bad, repeated = group(key)
        repeated[0] += len(copies) - 1
        good.append(cell) if cell in GOOD else bad.append(("", cell))
    return found


def null_first(value):
    """A sort key that puts None first."""
    return () if value is None else (value,)


def table_of(rows, kind):
    columns = [[row[place] for row in rows] for place in range(3)]
    kinds = (kind, pa.binary(), pa.string())
    names = ("id", "report", "group")
    return pa.table({name: pa.array(some, type_) for name, some, type_ in zip(names, columns, kinds, strict=True)})


def counted(folder, tables, partitions=1, by=("group",), plan=PLAN):
    """Partition and count all tables as an engine does."""
    request = TallyRequest(plan, "report", "id", tuple(by))
    folders = [folder / str(partition) for partition in range(partitions)]
    for path in folders:
        path.mkdir(parents=True)
    total = {}
    for place, table in enumerate(tables):
        batches = table.to_batches(max_chunksize=7)
        add_groups(total, deduplication.partition_rows(request, batches, folders, place).items())
    for path in folders:
        add_groups(total, deduplication.count_partition(request, path).items())
    return total


def check(found, expected):
    assert set(found) == set(expected)
    for key, (good, bad, (repeated,)) in expected.items():
        assert found[key].tally == PLAN.tally(good)
        assert found[key].refused.total == len(bad)
        assert found[key].refused.counts.get("without an id", 0) == sum(bool(reason) for reason, _ in bad)
        assert found[key].repeated == repeated


IDS = {
    "bytes": (pa.binary(), [b"", b"a", b"b", b"a\x00", None]),
    "large bytes": (pa.large_binary(), [b"", b"a", b"b", None]),
    "fixed bytes": (pa.binary(2), [b"aa", b"ab", None]),
    "byte views": (pa.binary_view(), [b"", b"a", b"long enough not to fit", None]),
    "texts": (pa.string(), ["", "a", "ä", "A", None]),
    "text views": (pa.string_view(), ["", "a", "long enough not to fit", None]),
    "dictionary": (pa.dictionary(pa.int8(), pa.string()), ["a", "b", "c", None]),
    "integers": (pa.int64(), [0, 1, -1, 2**63 - 1, -(2**63), None]),
    "small integers": (pa.int8(), [0, 1, -1, None]),
    "unsigned": (pa.uint64(), [0, 1, 2**64 - 1, 2**63, None]),
}
if hasattr(pa, "uuid"):
    IDS["uuids"] = (pa.uuid(), [b"a" * 16, b"b" * 16, None])


@pytest.mark.slow
@pytest.mark.parametrize("kind", IDS)
@settings(max_examples=15)
@given(data=st.data())
def test_any_table_equals_the_slow_way(kind, data, tmp_path_factory):
    type_, identifiers = IDS[kind]
    groups = st.sampled_from(["x", "y", None])
    rows = data.draw(st.lists(st.tuples(st.sampled_from(identifiers), st.sampled_from(CELLS), groups), max_size=25))
    partitions, cut = data.draw(st.integers(1, 5)), data.draw(st.integers(0, len(rows)))
    tables = [table_of(rows[:cut], type_), table_of(rows[cut:], type_)]
    found = counted(tmp_path_factory.mktemp("by"), tables, partitions)
    check(found, naive(rows))
    shuffled = data.draw(st.permutations(rows))
    assert counted(tmp_path_factory.mktemp("again"), [table_of(shuffled, type_)], 1) == found
    check(counted(tmp_path_factory.mktemp("all"), tables, partitions, by=()), naive(rows, grouped=False))


def row_that_counts(tmp_path, cells):
    """The result for these cells of one id."""
    rows = [(1, cell, "x") for cell in cells]
    (sifted,) = counted(tmp_path, [table_of(rows, pa.int64())]).values()
    assert sifted.repeated == len(cells) - 1
    return sifted


def test_of_several_good_reports_the_least_counts(tmp_path):
    low, high = REPORTS[0], REPORTS[-1]
    assert row_that_counts(tmp_path / "a", [high, low, high]).tally == PLAN.tally([low])
    assert row_that_counts(tmp_path / "b", [low, high]).tally == PLAN.tally([low])


@pytest.mark.parametrize("bad", [None, b"", b"\x00\x00", BATCH[:-1]])
def test_a_bad_copy_never_displaces_a_good_one(tmp_path, bad):
    good = REPORTS[-1]
    for place, cells in enumerate([[bad, good], [good, bad], [bad, bad, good]]):
        sifted = row_that_counts(tmp_path / str(place), cells)
        assert sifted == Sifted(PLAN.tally([good]), repeated=len(cells) - 1)


def test_of_bad_copies_one_is_reported(tmp_path):
    sifted = row_that_counts(tmp_path, [b"\x02\x00", b"\x01\x00", b"\x01\x00"])
    assert sifted.refused == Refused({"wrong length": 1}, {"wrong length": ("0100",)})


def test_an_id_in_two_groups_counts_once(tmp_path):
    """It counts in the group of the least report; for equal reports in the first group, with null first."""
    rows = [(1, REPORTS[1], "x"), (1, REPORTS[0], "y"), (2, REPORTS[0], "y"), (2, REPORTS[0], "x")]
    rows += [(3, REPORTS[0], "x"), (3, REPORTS[0], None)]
    found = counted(tmp_path, [table_of(rows, pa.int64())], 3)
    assert {key: (sifted.tally.reports, sifted.repeated) for key, sifted in found.items()} == {
        ("y",): (1, 1),
        ("x",): (1, 1),
        (None,): (1, 1),
    }


@pytest.mark.parametrize("name", [".x", "a.b", "[0]", ""])
def test_names_that_look_like_paths_are_names(tmp_path, name):
    """A path to a column "x" would sort by the wrong column."""
    table = pa.table({"id": [1, 1], "report": [REPORTS[0]] * 2, name: ["b", "a"], "x": ["a", "b"]})
    found = counted(tmp_path, [table], by=(name, "x"))
    assert list(found) == [("a", "b")]


def test_group_columns_of_other_types(tmp_path):
    groups = {
        "truth": pa.array([True, None]),
        "category": pa.array(["a", "b"]).dictionary_encode(),
        "view": pa.array([b"a", b"b"], pa.binary_view()),
        "number": pa.array([1.5, float("nan")]),
        "nothing": pa.nulls(2),
        "day": pa.array([1, 2], pa.date32()),
    }
    table = pa.table({"id": ["a", "a"], "report": [REPORTS[0]] * 2} | groups)
    found = counted(tmp_path, [table], by=tuple(groups))
    assert [(key[0], key[1], key[2]) for key in found] == [(None, "b", b"b")]


@pytest.mark.parametrize("kind", [pa.large_binary(), pa.binary_view(), pa.dictionary(pa.int16(), pa.binary())], ids=str)
def test_report_columns_of_other_types(tmp_path, kind):
    reports = WIDE.client(seed=1).reports(list(range(40)))
    table = pa.table({"id": [*range(40), *range(40)], "report": pa.array([*reports, *reports[::-1]], kind)})
    found = counted(tmp_path, [table], 3, by=(), plan=WIDE)
    assert found[()].tally == WIDE.tally([min(pair) for pair in zip(reports, reports[::-1], strict=True)])
    assert found[()].repeated == 40


def test_empty_tables_and_empty_partitions(tmp_path):
    assert counted(tmp_path / "a", [], 2) == {}
    assert counted(tmp_path / "b", [table_of([], pa.int64())], 2) == {}
    (sifted,) = counted(tmp_path / "c", [table_of([(1, REPORTS[0], "x")], pa.int64())], 200).values()
    assert sifted.tally.reports == 1


def test_as_many_partitions_as_memory_requires():
    narrow, wide = sunzi.make_plan("grr", 60, 1), sunzi.make_plan("rappor", 100_000, 1)
    assert deduplication.number_of_partitions(narrow, 0) == 1
    assert deduplication.number_of_partitions(narrow, 10**5) == 1
    assert deduplication.number_of_partitions(narrow, 10**8) in range(64, 256)
    assert deduplication.number_of_partitions(narrow, 10**12) == 512
    assert deduplication.number_of_partitions(wide, 10**6) in range(64, 257)
