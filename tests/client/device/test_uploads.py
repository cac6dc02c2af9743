"""The body of an upload: its first line has one spelling, and what is written is what is read."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sunzi.client.device.uploads import ID_BYTES, TOKEN_BYTES, Upload, parse_token
from sunzi.client.errors import ParameterError, ReportError

IDENTITY, TOKEN = bytes(range(ID_BYTES)), bytes(range(TOKEN_BYTES))
GROUPS = st.dictionaries(
    st.from_regex(re.compile("[a-z][a-z0-9_]{0,31}", re.ASCII), fullmatch=True),
    st.from_regex(re.compile("[A-Za-z0-9][A-Za-z0-9._+-]{0,63}", re.ASCII), fullmatch=True),
    max_size=8,
)


@given(
    st.binary(min_size=ID_BYTES, max_size=ID_BYTES),
    st.binary(),
    st.none() | st.binary(min_size=TOKEN_BYTES, max_size=TOKEN_BYTES),
    GROUPS,
)
def test_what_is_written_is_read(identity, content, token, groups):
    upload = Upload(identity, content, token, groups)
    assert Upload.from_bytes(upload.to_bytes()) == upload


def test_the_bytes_of_an_upload():
    upload = Upload(IDENTITY, b"\nreport", TOKEN, {"release": "124", "country": "DE"})
    assert upload.to_bytes() == f"{IDENTITY.hex()} {TOKEN.hex()} country=DE,release=124\n\nreport".encode()


@pytest.mark.parametrize(
    "line",
    [
        "",
        IDENTITY.hex(),
        f"{IDENTITY.hex()}\r\n",
        f"{IDENTITY.hex()} \n",
        f" {IDENTITY.hex()}\n",
        f"{IDENTITY.hex().upper()}\n",
        f"{IDENTITY.hex()[:-1]}\n",
        f"{IDENTITY.hex()}0\n",
        f"{IDENTITY.hex()}  {TOKEN.hex()}\n",
        f"{IDENTITY.hex()} {TOKEN.hex()[:-2]}\n",
        f"{IDENTITY.hex()} {TOKEN.hex().upper()}\n",
        f"{IDENTITY.hex()} country=DE {TOKEN.hex()}\n",
        f"{IDENTITY.hex()} country\n",
        f"{IDENTITY.hex()} Country=DE\n",
        f"{IDENTITY.hex()} country=é\n",
        f"{IDENTITY.hex()} country={'D' * 1001}\n",
    ],
)
def test_other_first_lines_are_refused(line):
    with pytest.raises(ReportError, match="an upload starts with a line"):
        Upload.from_bytes(line.encode() + b"report")


@pytest.mark.parametrize("groups", ["country=DE,country=FR", "country=DE,", "country=_", "a=1,B=2"])
def test_malformed_groups_are_refused(groups):
    with pytest.raises(ParameterError, match="group"):
        Upload.from_bytes(f"{IDENTITY.hex()} {groups}\nreport".encode())


@pytest.mark.parametrize("text", ["", "ab", "AB" * 32, "ab" * 33, " " + "ab" * 32, "zz" * 32, "ab" * 32 + "\n"])
def test_tokens_have_one_spelling(text):
    with pytest.raises(ParameterError, match="64 lower-case hexadecimal digits"):
        parse_token(text)


def test_a_token():
    assert parse_token(TOKEN.hex()) == TOKEN
