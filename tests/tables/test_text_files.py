"""Text before it becomes columns: compression, delimiters and lines."""

import gzip
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sunzi.client.errors import ParameterError
from sunzi.tables.text_files import DELIMITERS, GzipStream, check_delimiter, find_delimiter, format_of, read_lines


@given(st.binary(max_size=200), st.booleans())
def test_bytes_come_back_whether_compressed_or_not(data, packed):
    stored = gzip.compress(data) if packed else data
    if not packed and data.startswith(b"\x1f\x8b"):
        return
    assert io.BufferedReader(GzipStream(io.BytesIO(stored)), buffer_size=7).read() == data


@given(st.lists(st.text("abc 1", min_size=1, max_size=4), min_size=2, max_size=5), st.sampled_from(DELIMITERS))
def test_the_delimiter_of_plain_names_is_found(names, delimiter):
    assert find_delimiter(delimiter.join(names), None) == delimiter


def test_spellings_of_a_tab():
    assert check_delimiter("tab") == check_delimiter("\\t") == check_delimiter("\t") == "\t"
    for wrong in ("", '"', "\n", "é", ",,"):
        with pytest.raises(ParameterError, match="one character"):
            check_delimiter(wrong)


def test_lines_end_in_any_way_and_the_mark_is_no_text():
    assert [text for _, text in read_lines(io.BytesIO("\ufeffa\r\n\nb".encode()))] == ["a", "", "b"]


def test_the_format_is_the_suffix_before_compression():
    assert format_of("DATA.CSV.GZ", (".csv", ".tsv")) == ".csv"
    assert format_of("data.gz", (".csv",)) is None
