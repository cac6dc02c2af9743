"""The body of an upload: a first line, then a report or a batch."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from ..errors import ParameterError, ReportError
from ..groups import parse_groups

ID_BYTES = 16
TOKEN_BYTES = 32
_FIRST_LINE = re.compile(rb"([0-9a-f]{32})(?: ([0-9a-f]{64}))?(?: ([a-z][a-z0-9_]{0,31}=[!-~]{1,1000}))?\n")


@dataclass(frozen=True)
class Upload:
    """The first line has the id and, after a space each, the token if there is one, both in lower-case hexadecimal, and
    the public groups if there are any, as ``country=DE,release=124``.

    They travel in the body, because proxies log addresses, and because browsers send a body without headers
    of its own to another origin without asking first.

    >>> Upload(bytes(16), b"report").to_bytes()
    b'00000000000000000000000000000000\\nreport'
    """

    identity: bytes
    content: bytes
    token: bytes | None = None
    groups: Mapping[str, str] = field(default_factory=dict)

    def to_bytes(self) -> bytes:
        """The body."""
        token = [] if self.token is None else [self.token.hex()]
        groups = [",".join(f"{name}={value}" for name, value in sorted(self.groups.items()))] if self.groups else []
        return f"{' '.join([self.identity.hex(), *token, *groups])}\n".encode() + self.content

    @classmethod
    def from_bytes(cls, body: bytes) -> Upload:
        """Read a body; raise ReportError if its first line is malformed."""
        matched = _FIRST_LINE.match(body)
        if matched is None:
            raise ReportError(
                "an upload starts with a line: its id in 32 lower-case hexadecimal digits; if the collector needs a "
                "token, a space and the token in 64 digits; if it names groups, a space and they as country=DE,…; the "
                "report follows"
            )
        token = None if matched[2] is None else bytes.fromhex(matched[2].decode())
        groups = {} if matched[3] is None else parse_groups(matched[3].decode())
        return cls(bytes.fromhex(matched[1].decode()), body[matched.end() :], token, groups)


def parse_token(text: str) -> bytes:
    """Read a single-use token; raise ParameterError unless it is 64 lower-case hexadecimal digits."""
    if not re.fullmatch("[0-9a-f]{64}", text):
        raise ParameterError("a single-use token is 64 lower-case hexadecimal digits")
    return bytes.fromhex(text)
