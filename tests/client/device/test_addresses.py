"""Addresses of collections and epochs have one canonical spelling."""

import pytest

from sunzi.client.device.addresses import Address, canonical_epoch, parse_collection, parse_epoch
from sunzi.client.errors import ParameterError

EPOCH = "https://collector.example/v1/collections/browsers/epochs/12"


@pytest.mark.parametrize(
    "spelling",
    [
        EPOCH,
        EPOCH.upper().replace("/V1/COLLECTIONS/BROWSERS/EPOCHS", "/v1/collections/browsers/epochs"),
        EPOCH.replace("example", "example:443"),
        EPOCH.replace("example", "example:"),
        EPOCH.replace("example", "example:0443"),
        EPOCH.replace("example", "example."),
        EPOCH.replace("example", "example.:443"),
        EPOCH.replace("//", "//user:password@"),
        EPOCH.replace("/v1/", "//v1///"),
        f"{EPOCH}/",
    ],
)
def test_all_spellings_of_an_epoch_are_one(spelling):
    assert canonical_epoch(spelling) == EPOCH
    assert parse_epoch(spelling) == (EPOCH.removesuffix("/epochs/12"), 12)


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ("http://Localhost:80", "http://localhost"),
        ("http://localhost:443", "http://localhost:443"),
        ("https://localhost:80/", "https://localhost:80"),
        ("http://[::1]:8765", "http://[::1]:8765"),
        ("http://[0:0:0:0:0:0:0:1]", "http://[::1]"),
        ("http://127.0.0.1:8765", "http://127.0.0.1:8765"),
        ("http://127.0.0.1.:8765", "http://127.0.0.1:8765"),
        ("https://LOCALHOST.", "https://localhost"),
        ("https://Bücher.example.:80", "https://xn--bcher-kva.example:80"),
        ("https://Bücher.example", "https://xn--bcher-kva.example"),
        ("https://collector.example/Behind/a%20proxy", "https://collector.example/Behind/a%20proxy"),
    ],
)
def test_the_canonical_spelling(written, canonical):
    assert str(Address.parse(written)) == canonical
    assert str(Address.parse(canonical)) == canonical
    assert str(parse_collection(written)[0]) == f"{canonical}/v1/collections/default"
    assert parse_collection(f"{written}/v1/collections/browsers/")[1] == "browsers"


@pytest.mark.parametrize(
    "wrong",
    [
        "",
        "collector.example",
        "ftp://collector.example",
        "http://",
        "http://:80",
        "http://collector.example:0",
        "http://collector.example:65536",
        "http://collector.example:x",
        "http://col lector.example",
        "http://collector.example..",
        "http://.",
        "http://..",
        "http://[::1.]",
        "http://127.1",
        "http://127.1.",
        "http://127.0.0.01",
        "http://0x7f.1",
        "http://[::1",
        "http://[::g]",
        "http://collector.example/a b",
        "http://collector.example/a/../b",
        "http://collector.example/a/%2E%2e/b",
        "http://collector.example/?query",
        "http://collector.example/?",
        "http://collector.example/#part",
        f"http://{'a' * 64}.example",
    ],
)
def test_other_addresses_are_refused(wrong):
    with pytest.raises(ParameterError, match="address"):
        Address.parse(wrong)


@pytest.mark.parametrize(
    "wrong",
    [
        "https://collector.example",
        "https://collector.example/epochs/1",
        EPOCH.replace("/epochs/12", ""),
        EPOCH.replace("12", "0"),
        EPOCH.replace("12", "012"),
        EPOCH.replace("12", "1" * 11),
        EPOCH.replace("v1", "v2"),
        EPOCH.replace("browsers", "Browsers"),
        f"{EPOCH}/reports",
    ],
)
def test_other_addresses_are_no_epochs(wrong):
    with pytest.raises(ParameterError):
        parse_epoch(wrong)
