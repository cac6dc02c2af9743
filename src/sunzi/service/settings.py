"""How a service behaves, decided before it starts."""

from __future__ import annotations

import hashlib
import hmac
import json
from dataclasses import dataclass, field
from pathlib import Path

from sunzi.errors import ParameterError

_LOOPBACK = ("127.0.0.1", "::1", "localhost")
_SHORTEST_SECRET = 16


@dataclass(frozen=True)
class UploadKey:
    """Somebody who may upload, by the SHA-256 of a secret, and how many reports a minute."""

    name: str
    digest: bytes
    reports_per_minute: int


@dataclass(frozen=True)
class Settings:
    """Limits, secrets and addresses. Secrets are compared in constant time and never printed."""

    host: str = "127.0.0.1"
    port: int = 8765
    body_bytes: int = 4 << 20
    header_bytes: int = 32 << 10
    header_seconds: float = 10.0
    body_seconds: float = 30.0
    waiting_deposits: int = 10_000
    admin_token: str | None = field(default=None, repr=False)
    upload_keys: tuple[UploadKey, ...] = field(default=(), repr=False)
    single_use_tokens: bool = False
    allow_origins: tuple[str, ...] = ()
    trusted_proxies: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.admin_token is None and self.host not in _LOOPBACK:
            raise ParameterError(
                f"everyone who reaches {self.host} could read and close collections; give an admin token, or bind to "
                "127.0.0.1"
            )
        if self.admin_token is not None and len(self.admin_token) < _SHORTEST_SECRET:
            raise ParameterError(f"an admin token needs at least {_SHORTEST_SECRET} characters")
        for name in ("body_bytes", "header_bytes", "header_seconds", "body_seconds", "waiting_deposits"):
            if getattr(self, name) <= 0:
                raise ParameterError(f"{name} must be positive, got {getattr(self, name)}")

    def is_admin(self, secret: str | None) -> bool:
        """Whether this opens everything but uploading; without an admin token everyone who can connect is trusted."""
        if self.admin_token is None:
            return True
        return secret is not None and hmac.compare_digest(secret.encode(), self.admin_token.encode())

    def upload_key(self, secret: str | None) -> UploadKey | None:
        """Whose secret this is."""
        digest = hashlib.sha256((secret or "").encode()).digest()
        return next((key for key in self.upload_keys if hmac.compare_digest(key.digest, digest)), None)


def read_secret(path: str | Path) -> str:
    """A secret from a file, white space around it aside."""
    secret = Path(path).read_text(encoding="utf-8").strip()
    if not secret.isascii() or not secret.isprintable() or " " in secret:
        raise ParameterError(f"{path}: a secret is printable ASCII without spaces")
    return secret


def read_upload_keys(path: str | Path) -> tuple[UploadKey, ...]:
    """Keys from a JSON file: a list of {"name", "sha256" of the secret in hexadecimal, "reports_per_minute"}."""
    try:
        entries = json.loads(Path(path).read_text(encoding="utf-8"))
        keys = tuple(
            UploadKey(str(entry["name"]), bytes.fromhex(entry["sha256"]), int(entry["reports_per_minute"]))
            for entry in entries
        )
    except (ValueError, KeyError, TypeError) as error:
        raise ParameterError(
            f'{path}: upload keys are a JSON list of {{"name", "sha256", "reports_per_minute"}}: {error}'
        ) from None
    wrong = next((key for key in keys if len(key.digest) != 32 or key.reports_per_minute < 1), None)
    if wrong is not None or not keys:
        raise ParameterError(f"{path}: a key needs 64 hexadecimal digits and at least 1 report a minute")
    return keys
