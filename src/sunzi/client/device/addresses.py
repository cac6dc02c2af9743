"""Addresses of collections and epochs, each in one canonical spelling.

A device derives the id of its report from the epoch's address, so two spellings of one address would be two votes. The
canonical spelling is that of ``URL`` in browsers: scheme and host in lower case, no default port, no user name. In
addition it has no empty steps, no slash at its end, and no dot at the end of the host.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from typing import Self
from urllib.parse import urlsplit

from ..errors import ParameterError

DEFAULT_COLLECTION = "default"

_DEFAULT_PORTS = {"http": 80, "https": 443}
_HOST = re.compile("[a-z0-9_.-]*[a-z0-9_-]")
_NUMERIC = re.compile("(?:.*[.])?[0-9][0-9a-fx]*")  # browsers read 127.1 as 127.0.0.1
_STEP = re.compile("[A-Za-z0-9._~!$&'()*+,;=:@%-]+")
_EPOCH = re.compile("[1-9][0-9]{0,9}")
_COLLECTION = re.compile("[a-z0-9][a-z0-9_-]{0,63}")


@dataclass(frozen=True)
class Address:
    """An HTTP address in its canonical parts.

    >>> str(Address.parse("HTTPS://Collector.Example.:443//survey/"))
    'https://collector.example/survey'
    """

    scheme: str
    host: str
    port: int
    steps: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read an address; raise ParameterError if it is not one or has a query."""
        try:
            parts = urlsplit(text)
            if parts.scheme not in _DEFAULT_PORTS or parts.port == 0 or "?" in text or "#" in text:
                raise ValueError
            host = _canonical_host(parts.hostname or "")
            port = parts.port or _DEFAULT_PORTS[parts.scheme]
        except ValueError:
            raise ParameterError(
                "a collector's address begins with http://HOST or https://HOST, with an optional port up to 65535, and "
                f"has no query, got {text!r}"
            ) from None
        steps = tuple(step for step in parts.path.split("/") if step)
        for step in steps:
            if not _STEP.fullmatch(step) or step.lower().replace("%2e", ".") in {".", ".."}:
                raise ParameterError(f"cannot use {step!r} in a collector's address, got {text!r}")
        return cls(parts.scheme, host, port, steps)

    def __str__(self) -> str:
        """The canonical spelling."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port == _DEFAULT_PORTS[self.scheme] else f":{self.port}"
        return "/".join([f"{self.scheme}://{host}{port}", *self.steps])


def parse_collection(text: str) -> tuple[Address, str]:
    """The address of a collection, and its name.

    Parameters
    ----------
    text: ``http://HOST:PORT`` for the collection ``default``, or ``http://HOST:PORT/v1/collections/NAME``.
    """
    given = Address.parse(text)
    name, before = DEFAULT_COLLECTION, given.steps
    if given.steps[-3:-1] == ("v1", "collections"):
        name, before = check_name(given.steps[-1]), given.steps[:-3]
    return Address(given.scheme, given.host, given.port, (*before, "v1", "collections", name)), name


def parse_epoch(text: str) -> tuple[str, int]:
    """Split an epoch's address, in any spelling, into the collection's canonical address and the epoch's number.

    Parameters
    ----------
    text: ``http://HOST:PORT/v1/collections/NAME/epochs/N``.
    """
    given = Address.parse(text)
    before, last = given.steps[:-2], given.steps[-2:]
    if before[-3:-1] != ("v1", "collections") or last[0] != "epochs" or not _EPOCH.fullmatch(last[1]):
        raise ParameterError(f"an epoch's address must be http(s)://HOST/v1/collections/NAME/epochs/N, got {text!r}")
    check_name(before[-1])
    return str(Address(given.scheme, given.host, given.port, before)), int(last[1])


def canonical_epoch(text: str) -> str:
    """The canonical spelling of an epoch's address.

    Parameters
    ----------
    text: ``http://HOST:PORT/v1/collections/NAME/epochs/N``.
    """
    collection, number = parse_epoch(text)
    return f"{collection}/epochs/{number}"


def check_name(name: str) -> str:
    """Return the name of a collection; raise ParameterError if it cannot be part of a URL."""
    if not _COLLECTION.fullmatch(name):
        raise ParameterError(
            f"a collection's name must be 1 to 64 of a-z, 0-9, - and _, starting with a letter or digit, got {name!r}"
        )
    return name


def _canonical_host(host: str) -> str:
    """The host in lower case and ASCII, without the dot that may end it; raises ValueError if it is malformed."""
    if ":" in host:
        return str(IPv6Address(host))
    written = host.removesuffix(".").encode("idna").decode().lower()
    if not _HOST.fullmatch(written):
        raise ValueError
    return str(IPv4Address(written)) if _NUMERIC.fullmatch(written) else written
