"""Entity tags, conditional requests and compression."""

import gzip

import pytest
from starlette.requests import Request

from sunzi.collector.cacheable import IMMUTABLE, REVALIDATED, Cacheable

FILE = Cacheable.of(b'{"labels":"' + b"abc" * 1000 + b'"}')
STRONG = FILE.tag.removeprefix("W/")


def answer(**headers):
    raw = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return FILE.response(Request({"type": "http", "headers": raw}), IMMUTABLE)


def test_a_file_is_sent_whole():
    sent = answer()
    assert (sent.status_code, sent.body) == (200, FILE.content)
    assert sent.headers["ETag"] == FILE.tag
    assert sent.headers["Cache-Control"] == IMMUTABLE
    assert sent.headers["Vary"] == "Accept-Encoding"
    assert "Content-Encoding" not in sent.headers


@pytest.mark.parametrize("accepted", ["gzip", "deflate, gzip", "br;q=1.0, GZIP;q=0.5", "gzip; q=1"])
def test_a_file_is_compressed_for_clients_that_accept_it(accepted):
    sent = answer(accept_encoding=accepted)
    assert sent.headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(sent.body) == FILE.content
    assert len(sent.body) < len(FILE.content) / 10


@pytest.mark.parametrize("accepted", ["", "br", "gzip;q=0", "gzip; q=0.000", "x-gzip2"])
def test_and_for_no_others(accepted):
    assert answer(accept_encoding=accepted).body == FILE.content


@pytest.mark.parametrize("condition", [FILE.tag, STRONG, f'"other", {FILE.tag}', "*"])
def test_a_file_that_the_client_has_is_not_sent_again(condition):
    sent = answer(if_none_match=condition)
    assert (sent.status_code, sent.body) == (304, b"")
    assert sent.headers["ETag"] == FILE.tag
    assert sent.headers["Cache-Control"] == IMMUTABLE


@pytest.mark.parametrize("condition", ["", '"other"', STRONG.strip('"'), STRONG[:-2] + '"'])
def test_another_tag_is_another_file(condition):
    assert answer(if_none_match=condition).status_code == 200


def test_other_contents_have_other_tags():
    assert Cacheable.of(b"{}").tag != Cacheable.of(b"[]").tag
    assert Cacheable.of(b"{}") == Cacheable.of(b"{}")
    assert "no-cache" in REVALIDATED
