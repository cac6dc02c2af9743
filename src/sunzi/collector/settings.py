"""The settings of a service: addresses, limits and secrets."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import json
import logging
import re
from dataclasses import dataclass, field, replace
from pathlib import Path

from sunzi.batch import check_delta, check_honest
from sunzi.client.errors import ParameterError
from sunzi.collector.schedules import Schedule

_log = logging.getLogger(__name__)

_LOOPBACK = ("127.0.0.1", "::1", "localhost")
_SHORTEST_SECRET = 16
_ORIGIN = re.compile(r"https?://([a-z0-9.-]+|\[[0-9a-f:]+\])(:[0-9]{1,5})?")
_ANY = "*"
_POSITIVE = (
    "batch_reports",
    "body_bytes",
    "body_seconds",
    "connections",
    "header_bytes",
    "header_seconds",
    "minimum_reports",
    "waiting_bytes",
    "waiting_deposits",
)


@dataclass(frozen=True)
class UploadKey:
    """A client that may upload: its name, the SHA-256 of its secret, and its quota.

    >>> UploadKey("app", hashlib.sha256(b"secret").digest(), reports_per_minute=10_000).name
    'app'
    """

    name: str
    digest: bytes
    reports_per_minute: int


@dataclass(frozen=True)
class Settings:
    """Addresses, limits and secrets. Secrets are compared in constant time and never printed.

    Parameters
    ----------
    host, port: where to listen; any host but this machine requires an admin token. Port 0 is any free one.
    body_bytes, body_seconds: the limits of a request's body.
    header_bytes, header_seconds: the limits of a request's headers.
    connections: the number of requests that may be in progress; a further one is answered with 503. The limit on open
        files may lower it.
    batch_reports: the largest number of reports in one batch.
    waiting_deposits: the number of uploads that may wait for a commit.
    waiting_bytes: the memory for bodies that are being read, and for decoded uploads that wait for a commit.
    minimum_reports: the number of reports below which no estimate, tally or health is published.
    publish_delta: publish closed epochs only, and compute what readers can learn about one person, with this δ (see
        docs/batch.md); None publishes open epochs too, and claims nothing about readers.
    honest: with ``publish_delta``, which share of the reports comes from clients that follow the plan: your estimate.
    fresh_noise: with ``publish_delta``, whether people are in several epochs with fresh noise in each.
    cohort: with ``publish_delta``, for devices that repeat their reports: how many people, at least, are in exactly the
        same epochs and groups. With neither, the guarantee covers people who report in one epoch.
    admin_token: the secret for everything but plans and uploads. Without one, any local process has operator access;
        other web origins are refused.
    upload_keys: who may upload, with quotas; empty means everyone.
    admin_token_file, upload_keys_file: where these secrets come from. A running service reads a changed file again.
    audit_log: a file for one line per operator's request; None writes none.
    single_use_tokens: whether every upload must spend a token.
    allow_origins: the web origins that may fetch plans and upload (CORS).
    trusted_proxies: the addresses or networks of proxies whose forwarded headers are used.
    rotate: when a new epoch of every collection is opened; None leaves that to the operator.
    grace_seconds: with ``rotate``, how long the old epoch still counts late reports.

    >>> Settings(port=0, body_bytes=1 << 20).host
    '127.0.0.1'
    """

    host: str = "127.0.0.1"
    port: int = 8765
    body_bytes: int = 4 << 20
    header_bytes: int = 32 << 10
    header_seconds: float = 10.0
    body_seconds: float = 30.0
    connections: int = 2000
    batch_reports: int = 10_000
    waiting_deposits: int = 10_000
    waiting_bytes: int = 128 << 20
    minimum_reports: int = 100
    publish_delta: float | None = None
    honest: float | None = None
    fresh_noise: bool = False
    cohort: int | None = None
    admin_token: str | None = field(default=None, repr=False)
    upload_keys: tuple[UploadKey, ...] = field(default=(), repr=False)
    admin_token_file: Path | None = None
    upload_keys_file: Path | None = None
    audit_log: Path | None = None
    single_use_tokens: bool = False
    allow_origins: tuple[str, ...] = ()
    trusted_proxies: tuple[str, ...] = ()
    rotate: Schedule | None = None
    grace_seconds: float = 3600.0

    def __post_init__(self) -> None:
        if self.admin_token is None and self.host not in _LOOPBACK:
            raise ParameterError(
                f"anyone who can reach {self.host} could read and close collections; set an admin token, or bind to "
                "127.0.0.1"
            )
        if self.admin_token is not None and len(self.admin_token) < _SHORTEST_SECRET:
            raise ParameterError(f"an admin token needs at least {_SHORTEST_SECRET} characters")
        for name in _POSITIVE:
            if getattr(self, name) <= 0:
                raise ParameterError(f"{name} must be positive, got {getattr(self, name)}")
        if self.grace_seconds < 0:
            raise ParameterError(f"grace_seconds must not be negative, got {self.grace_seconds}")
        if not 0 <= self.port < 1 << 16:
            raise ParameterError(f"a port must be a number from 0 to 65535, got {self.port}")
        names = [key.name for key in self.upload_keys]
        if len({key.digest for key in self.upload_keys}) < len(names) or len(set(names)) < len(names):
            raise ParameterError("upload keys must have distinct names and secrets")
        self._check_publication()
        for origin in self.allow_origins:
            if origin != _ANY and not _ORIGIN.fullmatch(origin):
                raise ParameterError(
                    f"an origin must be SCHEME://HOST[:PORT] in lower case, such as https://example.org, got {origin!r}"
                )
        for proxy in self.trusted_proxies:
            if proxy != _ANY and not _is_network(proxy):
                raise ParameterError(f"a trusted proxy must be an address or network such as 10.0.0.0/8, got {proxy!r}")

    def _check_publication(self) -> None:
        if self.publish_delta is None:
            if self.honest is not None or self.fresh_noise or self.cohort is not None:
                raise ParameterError("honest, fresh_noise and cohort are about publish_delta; set that, such as 1e-8")
            return
        check_delta(self.publish_delta)
        if self.honest is None:
            raise ParameterError(
                "publish_delta needs honest, the share of reports whose clients follow the plan, such as 0.9: no "
                "guarantee is known without it"
            )
        check_honest(self.honest)
        if self.fresh_noise and self.cohort is not None:
            raise ParameterError("devices make fresh noise or repeat reports: set fresh_noise or cohort, not both")
        if self.cohort is not None and self.cohort < self.minimum_reports:
            raise ParameterError(
                f"a cohort of {self.cohort:,} people is smaller than minimum_reports, {self.minimum_reports:,}"
            )

    def is_admin(self, secret: str | None) -> bool:
        """Whether this is the admin token. Always true if none is set."""
        if self.admin_token is None:
            return True
        return secret is not None and hmac.compare_digest(secret.encode(), self.admin_token.encode())

    def upload_key(self, secret: str | None) -> UploadKey | None:
        """The key with this secret, or None."""
        digest = hashlib.sha256((secret or "").encode()).digest()
        return next((key for key in self.upload_keys if hmac.compare_digest(key.digest, digest)), None)


class LiveSettings:
    """Settings whose secrets are read again when their files change, so that no restart is needed.

    A file that is missing or malformed changes nothing, and a warning is logged.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._stamps = self._read_stamps()

    @property
    def current(self) -> Settings:
        """The settings with the secrets as they are now."""
        stamps = self._read_stamps()
        if stamps != self._stamps:
            self._stamps = stamps
            try:
                self._settings = self._reread()
            except (OSError, UnicodeError, ParameterError) as error:
                _log.warning("the secrets stay as they were: %s", error)
        return self._settings

    def _reread(self) -> Settings:
        admin, keys = self._settings.admin_token_file, self._settings.upload_keys_file
        return replace(
            self._settings,
            admin_token=read_secret(admin) if admin else self._settings.admin_token,
            upload_keys=read_upload_keys(keys) if keys else self._settings.upload_keys,
        )

    def _read_stamps(self) -> list[tuple[int, int, int] | None]:
        return [_stamp(file) for file in (self._settings.admin_token_file, self._settings.upload_keys_file) if file]


def _stamp(file: Path) -> tuple[int, int, int] | None:
    """A value that changes when the file does."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def is_local(authority: str) -> bool:
    """Whether HOST or HOST:PORT is a loopback name, which no other machine can have."""
    return re.sub(":[0-9]+$", "", authority).strip("[]").lower() in _LOOPBACK


def _is_network(text: str) -> bool:
    try:
        ipaddress.ip_network(text)
    except ValueError:
        return False
    return True


def read_secret(path: str | Path) -> str:
    """Read a secret from a file, without surrounding white space."""
    secret = Path(path).read_text(encoding="utf-8").strip()
    if not secret.isascii() or not secret.isprintable() or " " in secret:
        raise ParameterError(f"{path}: a secret is printable ASCII without spaces")
    return secret


def read_upload_keys(path: str | Path) -> tuple[UploadKey, ...]:
    """Read keys from a JSON file: a list of {"name", "sha256" of the secret in hexadecimal, "reports_per_minute"}."""
    try:
        entries = json.loads(Path(path).read_text(encoding="utf-8"))
        keys = tuple(
            UploadKey(str(entry["name"]), bytes.fromhex(entry["sha256"]), entry["reports_per_minute"])
            for entry in entries
        )
    except (ValueError, KeyError, TypeError) as error:
        raise ParameterError(
            f'{path}: upload keys are a JSON list of {{"name", "sha256", "reports_per_minute"}}: {error}'
        ) from None
    if not keys or not all(_is_valid(key) for key in keys):
        raise ParameterError(
            f"{path}: list at least one key, each with a name of 1 to 64 printable characters, a sha256 of 64 "
            "hexadecimal digits and a whole number of reports_per_minute, at least 1"
        )
    return keys


def _is_valid(key: UploadKey) -> bool:
    is_named = 1 <= len(key.name) <= 64 and key.name.isprintable()
    # type() because True is an int in Python.
    return is_named and len(key.digest) == 32 and type(key.reports_per_minute) is int and key.reports_per_minute >= 1
