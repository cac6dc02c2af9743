"""One column of every format: the same rows in bounded pieces, and errors for invalid files."""

import csv
import gzip
import io

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import ipc, parquet

from sunzi.client.errors import ParameterError
from sunzi.errors import MissingExtraError
from sunzi.tables import arrow, column_rows, value_columns
from sunzi.tables.value_columns import open_column

CELLS = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=6) | st.sampled_from(
    ["", "a", '"', ",", "\n", "\r\n", "NA", "null", " x ", "1", "é", "日本"]
)
TABLES = st.integers(1, 3).flatmap(lambda width: st.lists(st.lists(CELLS, min_size=width, max_size=width), max_size=12))


def values(column) -> list[object]:
    found = []
    for piece in column.pieces:
        for row in range(piece.codes.size):
            gone = piece.missing is not None and piece.missing[row]
            found.append(None if gone else piece.value(row))
    return found


def read_csv(data: bytes, column: str | None, *, plain: bool) -> list[object]:
    return values(value_columns.csv_column(io.BytesIO(data), len(data), column, plain=plain))


def outcome(data: bytes, column: str | None, *, plain: bool) -> object:
    """The rows, or the error."""
    try:
        return read_csv(data, column, plain=plain)
    except ParameterError:
        return "refused"


# With " " as its line end, Python's writer leaves a "\r" unquoted, which no reader can recover from.
@pytest.mark.slow
@given(table=TABLES, style=st.sampled_from([(csv.QUOTE_MINIMAL, "\r\n"), (csv.QUOTE_ALL, "\n")]))
def test_both_csv_readers_read_back_what_was_written(table, style):
    width = len(table[0]) if table else 1
    text = io.StringIO()
    writer = csv.writer(text, quoting=style[0], lineterminator=style[1])
    writer.writerows([[f"column {number}" for number in range(width)], *table])
    for position in range(width):
        expected = [row[position] for row in table]
        for plain in (True, False):
            assert read_csv(text.getvalue().encode(), f"column {position}", plain=plain) == expected


@given(st.text(st.sampled_from('ab,"\n\r é'), max_size=40))
def test_both_csv_readers_agree_on_any_bytes(body):
    data = b"x,y\n" + body.encode()
    assert outcome(data, "y", plain=True) == outcome(data, "y", plain=False)


@given(st.text(st.sampled_from('ab"\n'), max_size=30))
def test_both_csv_readers_agree_on_one_column(body):
    data = b"x\n" + body.encode()
    assert outcome(data, None, plain=True) == outcome(data, None, plain=False)


@pytest.mark.parametrize("plain", [True, False])
class TestCsv:
    def test_a_quotation_that_is_never_closed_does_not_swallow_rows(self, plain):
        with pytest.raises(ParameterError, match="odd number of quotation marks"):
            read_csv(b'x,y\na,"b\nc,d\ne,f\n', "x", plain=plain)

    @pytest.mark.parametrize("body", [b"a,b\nc\n", b"a,b\nc,d,e\n"])
    def test_rows_of_the_wrong_width_are_refused(self, plain, body):
        with pytest.raises(ParameterError, match=r"(?i)row #?2"):
            read_csv(b"x,y\n" + body, "x", plain=plain)

    def test_other_encodings_are_refused_in_the_column_alone(self, plain):
        with pytest.raises(ParameterError, match=r"UTF-?8"):
            read_csv(b"x,y\n\xe9,b\n", "x", plain=plain)
        assert read_csv(b"x,y\n\xe9,b\n", "y", plain=plain) == ["b"]

    def test_a_byte_order_mark_is_no_part_of_a_name(self, plain):
        assert read_csv(b"\xef\xbb\xbfx,y\na,b\n", "x", plain=plain) == ["a"]

    def test_blank_lines(self, plain):
        assert read_csv(b"x\na\n\nb\n", None, plain=plain) == ["a", "", "b"]
        assert read_csv(b"x,y\na,b\n\n\nc,d\n", "x", plain=plain) == ["a", "c"]

    @pytest.mark.parametrize("body", [b"", b"\n\n"])
    def test_no_rows(self, plain, body):
        assert read_csv(b"x,y\n" + body, "x", plain=plain) == []

    def test_a_name_that_occurs_twice_matters_only_if_it_is_chosen(self, plain):
        assert read_csv(b"x,x,y\n1,2,3\n", "y", plain=plain) == ["3"]
        with pytest.raises(ParameterError, match="2 columns named 'x'"):
            read_csv(b"x,x,y\n1,2,3\n", "x", plain=plain)

    def test_pieces_are_bounded(self, plain, monkeypatch):
        monkeypatch.setattr(column_rows, "ROWS_AT_ONCE", 100)
        data = b"x\n" + b"".join(b"%d\n" % number for number in range(1_050))
        pieces = list(value_columns.csv_column(io.BytesIO(data), None, None, plain=plain).pieces)
        assert max(piece.codes.size for piece in pieces) <= 100
        assert sum(piece.codes.size for piece in pieces) == 1_050


@pytest.mark.parametrize(
    ("data", "words"),
    [(b"", "the table is empty"), (b"\n", "the table is empty"), (b"\xff\n", "not CSV in UTF-8")],
)
def test_an_invalid_header(data, words):
    with pytest.raises(ParameterError, match=words):
        read_csv(data, None, plain=True)


@pytest.mark.parametrize(
    ("column", "words"), [("z", "no column named 'z'; the columns are 'x', 'y'"), (None, "name one of them")]
)
def test_a_missing_column_is_refused_with_the_list_of_columns(column, words):
    with pytest.raises(ParameterError, match=words):
        read_csv(b"x,y\n1,2\n", column, plain=True)


def opened(path, column=None, delimiter=None) -> list[object]:
    with open_column(path, column, delimiter) as found:
        return values(found)


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize("plain", [False, True], ids=["pyarrow", "python"])
@pytest.mark.parametrize(
    ("name", "text", "column", "expected"),
    [
        ("t.csv", 'id,browser\n1,"a;b"\n2,\n', "browser", ["a;b", ""]),
        ("t.csv", "id;browser\n1;a,b\n2;c\n", "browser", ["a,b", "c"]),
        ("t.csv", "id\tbrowser\n1\ta\n", "browser", ["a"]),
        ("t.csv", 'id,"a;b",browser\n1,2,c\n', "browser", ["c"]),
        ("t.csv", "id,a;b,browser\n1,2,c\n", "browser", ["c"]),
        ("t.csv", "value\na;b\nc\n", None, ["a;b", "c"]),
        ("t.tsv", "id\tbrowser,x\n1\ta\n", "browser,x", ["a"]),
        ("t.jsonl", '{"id": 1, "b": "a"}\n\n{"b": null}\n{"id": 2}\n{"b": 7}\n', "b", ["a", None, None, 7]),
        ("t.ndjson", '{"b": "日本"}\n', None, ["日本"]),
        ("t.txt", "\ufeffa\r\nb, c\n\nd", None, ["a", "b, c", "", "d"]),
    ],
)
def test_texts_of_every_kind(tmp_path, monkeypatch, packed, plain, name, text, column, expected):
    if plain:
        monkeypatch.setattr(arrow, "find_pyarrow", lambda: None)
    path = tmp_path / (name + ".gz" * packed)
    path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    assert opened(path, column) == expected
    with open_column(path, column) as found:
        list(found.pieces)
        assert found.fraction() == 1


@pytest.mark.parametrize(
    ("name", "data", "column", "delimiter", "complaint"),
    [
        ("t.csv", b"a;b,c\n1;2,3\n", None, None, "a comma and a semicolon.*say so with --delimiter"),
        ("t.csv", b"a;b,c\n1;2,3\n", "d", None, "a comma and a semicolon"),
        ("t.csv", b"a,b\n1,2\n", "a", "::", "must be one character"),
        ("t.txt", b"a\n", None, ";", "a .txt file has no delimiter"),
        ("t.txt", b"a\n", "a", None, "one value per line and no column 'a'"),
        ("t.txt", b"\xff\n", None, None, "line 1 is not UTF-8"),
        ("t.txt", b"a\n" + b"x" * (1 << 20) + b"y\n", None, None, "line 2 is longer than"),
        ("t.jsonl", b"", None, None, "the file is empty"),
        ("t.jsonl", b'{"a": 1, "b": 2}\n', None, None, "name one of them: 'a', 'b'"),
        ("t.jsonl", b'{"a": 1}\n[2]\n', "a", None, "line 2 must be an object"),
        ("t.jsonl", b'{"a": 1}\n{"a"\n', "a", None, "line 2 is not JSON"),
        ("t.jsonl", b'{"a": 1}\n' + b"[" * 200_000 + b"\n", "a", None, "line 2 is not JSON"),
        ("t.jsonl", b'{"a": 1}\n{"a": 1.5}\n', "a", None, "line 2: 'a' must be text or an integer, got 1.5"),
        ("t.jsonl", b'{"a": true}\n', "a", None, "got true"),
        ("t.csv", b"a,b,a\n1,2,3\n", "a", None, "there are 2 columns named 'a'"),
        ("t.jsonl", b'{"a": "\\ud800"}\n', "a", None, "is not UTF-8"),
        (
            "t.csv.gz",
            gzip.compress(b"a\n" + bytes(range(48, 123)) * 90, mtime=0)[:-20],
            None,
            None,
            "gzip file is truncated",
        ),
        ("t.csv.gz", gzip.compress(b"a\n1\n", mtime=0)[:-8] + bytes(8), None, None, "gzip file is damaged"),
    ],
    ids=range(18),
)
def test_texts_that_cannot_be_read(tmp_path, name, data, column, delimiter, complaint):
    (tmp_path / name).write_bytes(data)
    with pytest.raises(ParameterError, match=complaint):
        opened(tmp_path / name, column, delimiter)


def test_a_delimiter_may_be_named(tmp_path):
    (tmp_path / "t.csv").write_text("a;b,c\n1;2,3\n")
    assert opened(tmp_path / "t.csv", "c", ",") == ["3"]
    assert opened(tmp_path / "t.csv", "b,c", ";") == ["2,3"]
    (tmp_path / "t.tsv").write_text("a|b\n1|2\n")
    assert opened(tmp_path / "t.tsv", "b", "|") == ["2"]


def test_a_compressed_stream():
    with open_column(io.BytesIO(gzip.compress(b"a;b\n1;2\n")), "b") as column:
        assert values(column) == ["2"]


def test_labels_from_a_column(tmp_path):
    (tmp_path / "t.csv").write_text("code;name\n1;red\n2;green\n")
    assert value_columns.read_labels(tmp_path / "t.csv", "name") == ["red", "green"]
    (tmp_path / "t.jsonl").write_text('{"name": "red"}\n{"name": null}\n')
    with pytest.raises(ParameterError, match="row 2 has no label"):
        value_columns.read_labels(tmp_path / "t.jsonl", "name")
    assert value_columns.has_columns("labels.CSV.gz")
    assert not value_columns.has_columns("labels.txt")


TEXTS = ["a", None, "b", "", "a", "é"]
NUMBERS = [3, None, 0, 7, 7, 1]


def write_arrow(path, table, stream=False):
    opened = ipc.new_stream if stream else ipc.new_file
    with opened(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=4)


WRITERS = {
    "t.parquet": lambda path, table: parquet.write_table(table, path, row_group_size=4),
    "t.arrow": write_arrow,
    "t.feather": lambda path, table: write_arrow(path, table, stream=True),
}


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (pa.string(), TEXTS),
        (pa.large_string(), TEXTS),
        (pa.dictionary(pa.int8(), pa.string()), TEXTS),
        (pa.int32(), NUMBERS),
        (pa.uint64(), NUMBERS),
        (pa.dictionary(pa.int32(), pa.int64()), NUMBERS),
    ],
    ids=str,
)
def test_arrow_and_parquet(tmp_path, name, kind, expected):
    if pa.types.is_dictionary(kind):
        array = pa.array(expected, kind.value_type).dictionary_encode().cast(kind)
    else:
        array = pa.array(expected, kind)
    WRITERS[name](tmp_path / name, pa.table({"other": range(6), "value": array}))
    with open_column(tmp_path / name, "value") as column:
        assert values(column) == expected
        assert column.fraction() in (1.0, None)


def test_texts_that_are_shared_are_shared(tmp_path, monkeypatch):
    """Pieces with the same dictionary share one list, which is looked up once."""
    monkeypatch.setattr(column_rows, "ROWS_AT_ONCE", 10)
    parquet.write_table(pa.table({"value": ["a", "b"] * 50}), tmp_path / "t.parquet")
    with open_column(tmp_path / "t.parquet") as column:
        pieces = list(column.pieces)
    assert len(pieces) == 10
    assert len({id(piece.texts) for piece in pieces}) == 1


@pytest.mark.parametrize("kind", [pa.float64(), pa.bool_(), pa.binary(), pa.list_(pa.int8())], ids=str)
def test_types_without_a_meaning_are_refused(tmp_path, kind):
    parquet.write_table(pa.table({"value": pa.array([None], kind)}), tmp_path / "t.parquet")
    with pytest.raises(ParameterError, match="cast it to text or to integers"), open_column(tmp_path / "t.parquet"):
        pass


@pytest.mark.parametrize("name", ["t.parquet", "t.arrow"])
def test_a_damaged_file_is_one_line(tmp_path, name):
    (tmp_path / name).write_bytes(b"PAR1 but not for long")
    with pytest.raises(ParameterError, match="cannot be read") as caught, open_column(tmp_path / name):
        pass
    assert "\n" not in str(caught.value)


def test_a_missing_file_and_an_unknown_suffix(tmp_path):
    with pytest.raises(FileNotFoundError), open_column(tmp_path / "no.parquet"):
        pass
    with pytest.raises(ParameterError, match=r"must end in one of \.csv"), open_column(tmp_path / "data.xlsx"):
        pass


@pytest.mark.parametrize("name", ["t.parquet", "t.arrow"])
def test_without_pyarrow_the_extra_is_named(tmp_path, name, monkeypatch):
    (tmp_path / name).write_bytes(b"")
    monkeypatch.setattr(arrow, "find_pyarrow", lambda: None)
    with pytest.raises(MissingExtraError, match=r"sunzi\[frames\]"), open_column(tmp_path / name):
        pass


def test_tabs(tmp_path):
    (tmp_path / "t.tsv").write_bytes(b"x\ty\n1,5\t2\n")
    with open_column(tmp_path / "t.tsv", "x") as column:
        assert values(column) == ["1,5"]
