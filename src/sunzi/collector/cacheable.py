"""Responses that browsers and proxies may keep: an entity tag, 304 if nothing changed, and gzip."""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

REVALIDATED = "public, no-cache"
"""May be kept, but every use asks whether it changed."""
IMMUTABLE = "public, max-age=31536000, immutable"
"""May be kept for a year without asking."""


@dataclass(frozen=True)
class Cacheable:
    """A JSON file with its gzip form and its entity tag."""

    content: bytes
    compressed: bytes
    tag: str

    @classmethod
    def of(cls, content: bytes) -> Cacheable:
        """Compress and hash a file, once for all requests.

        >>> Cacheable.of(b"{}").tag
        'W/"44136fa355b3678a1146ad16f7e8649e"'
        """
        tag = hashlib.sha256(content).hexdigest()[:32]
        return cls(content, gzip.compress(content, mtime=0), f'W/"{tag}"')

    def response(self, request: Request, cache_control: str) -> Response:
        """The file, compressed if the client accepts that; 304 if the client has it already."""
        headers = {"ETag": self.tag, "Cache-Control": cache_control, "Vary": "Accept-Encoding"}
        if _names(request.headers.get("if-none-match", ""), self.tag):
            return Response(status_code=304, headers=headers)
        if not _accepts_gzip(request.headers.get("accept-encoding", "")):
            return Response(self.content, headers=headers, media_type="application/json")
        headers["Content-Encoding"] = "gzip"
        return Response(self.compressed, headers=headers, media_type="application/json")


def _names(condition: str, tag: str) -> bool:
    """Whether an If-None-Match header names a tag; a proxy may have made a weak tag strong."""
    named = {each.strip().removeprefix("W/") for each in condition.split(",")}
    return "*" in named or tag.removeprefix("W/") in named


def _accepts_gzip(accepted: str) -> bool:
    """Whether an Accept-Encoding header allows gzip."""
    for each in accepted.split(","):
        name, _, parameters = each.strip().partition(";")
        if name.strip().lower() == "gzip":
            quality = parameters.strip().lower().removeprefix("q=")
            return quality.strip("0.") != "" if parameters.strip() else True
    return False
