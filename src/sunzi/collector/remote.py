"""A client of a collector over HTTP: fetch the plan, upload until acknowledged, read the tally.

An upload is retried with the same id and bytes, so it is counted once. Only a collector's own JSON counts as an
acknowledgement or a refusal; responses of proxies and captive portals do not. Needs no extra.
"""

from __future__ import annotations

import http.client
import io
import re
import secrets
import socket
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any, cast
from urllib.parse import quote

from sunzi.collector.addresses import Address, parse_collection
from sunzi.collector.epochs import ID_BYTES, Upload, check_name, parse_token
from sunzi.contract import Contract, parse_json
from sunzi.errors import ParameterError, PlanError, PrivacyError, ReportError, StoreError
from sunzi.groups import chosen_groups
from sunzi.numerics.checks import real_number, whole_number
from sunzi.numerics.thresholds import parse_epsilon
from sunzi.plan import Plan
from sunzi.tally import Tally

LARGEST_PLAN_BYTES = 1 << 25
"""The largest answer that is read as a plan; receipts and refusals are limited to 64 KiB."""

_LARGEST_RECEIPT_BYTES = 1 << 16
_LARGEST_HEADER_BYTES = 1 << 16
_COUNTER_BYTES = 8
_LARGEST_EPOCH = 1 << 31
_AGAIN = (408, 421, 425, 429)  # and every 5xx: these may be temporary
_SECONDS = 30.0
_LEAST_SECONDS = 1.0  # an attempt gets this long even without patience
_LONGEST_WAIT = 60.0
_LONGEST_MESSAGE = 200


class TooFewReportsError(StoreError):
    """The epoch has fewer reports than the collector publishes anything about."""


class UnauthorizedError(StoreError):
    """The key or token is unknown. The same upload can still be counted with the right one.

    >>> import sunzi
    >>> from contextlib import closing
    >>> from sunzi.collector import Settings, UploadKey, serve
    >>> plan = sunzi.make_plan("grr", ["apple", "pear"], epsilon=1)
    >>> settings = Settings(upload_keys=(UploadKey("app", bytes(32), reports_per_minute=100),))
    >>> with serve(plan, settings=settings) as running, closing(RemoteCollector(running.url, max_epsilon=1)) as remote:
    ...     remote.upload(remote.current(), plan.client().report("pear"))
    Traceback (most recent call last):
        ...
    sunzi.collector.remote.UnauthorizedError: the collector rejected this key or token (401): send an upload key, ...
    """


@dataclass(frozen=True)
class RemoteEpoch:
    """The plan, and the epoch that reports must name.

    >>> import sunzi
    >>> from sunzi.collector import serve
    >>> plan = sunzi.make_plan("grr", ["apple", "pear"], epsilon=1)
    >>> with serve({"fruit": plan}) as running:
    ...     remote = RemoteCollector(f"{running.url}/v1/collections/fruit", max_epsilon=1)
    ...     epoch = remote.current()
    ...     remote.close()
    >>> epoch.collection, epoch.number, epoch.is_open, epoch.plan == plan
    ('fruit', 1, True, True)
    """

    plan: Plan
    collection: str
    number: int
    is_open: bool
    url: str = ""
    """Where to upload: ``…/v1/collections/NAME/epochs/N``."""


@dataclass(frozen=True)
class ListedEpoch:
    """An epoch in a collector's list."""

    collection: str
    number: int
    reports: int
    opened_at: float
    """In seconds since 1970."""
    is_open: bool

    @classmethod
    def from_json(cls, fields: Any) -> ListedEpoch:
        """Read an entry of the list; raises ParameterError, TypeError or KeyError if it is malformed."""
        number = whole_number("epoch", fields["epoch"], 1, _LARGEST_EPOCH)
        reports = whole_number("reports", fields["reports"], 0)
        opened_at = real_number("opened_at", fields["opened_at"])
        return cls(check_name(fields["collection"]), number, reports, opened_at, fields["open"] is True)


class RemoteCollector:
    """One collection of a remote collector.

    Parameters
    ----------
    address: ``http://HOST:PORT`` for the collection ``default``, or ``http://HOST:PORT/v1/collections/NAME``.
    max_epsilon: the largest ε to accept in a plan; None accepts any, for operators and simulations.
    secret: an upload key or the admin token.
    patience: for how many seconds to retry temporary failures: a full queue, a restart, a lost connection. A request
        takes at most 30 seconds of it.
    sleep: called to pause between attempts.

    >>> import sunzi
    >>> from sunzi.collector import serve
    >>> with serve(sunzi.make_plan("grr", ["yes", "no"], epsilon=1)) as collector:
    ...     remote = RemoteCollector(collector.url, max_epsilon=1)
    ...     epoch = remote.current()
    ...     print(remote.upload(epoch, epoch.plan.client().report("yes")))
    ...     remote.close()
    counted
    """

    def __init__(
        self,
        address: str,
        *,
        max_epsilon: int | float | str | Decimal | Fraction | None,
        secret: str | None = None,
        patience: float = 60.0,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        parsed, self.collection = parse_collection(address)
        self.url, self._path = str(parsed), "/" + "/".join(parsed.steps)
        self.is_named = Address.parse(address).steps == parsed.steps
        kind = http.client.HTTPSConnection if parsed.scheme == "https" else http.client.HTTPConnection
        self._disconnected = partial(kind, parsed.host, parsed.port)
        self._connection = self._disconnected()
        self._max_epsilon = None if max_epsilon is None else parse_epsilon(max_epsilon)
        self._headers = {} if secret is None else {"Authorization": f"Bearer {secret}"}
        self._patience, self._sleep = patience, sleep

    def served(self) -> list[str]:
        """The addresses of all collections of the collector; needs the admin token, or a local connection."""
        root = self.url.rpartition("/")[0]
        return [f"{root}/{name}" for name in sorted({epoch.collection for epoch in self._listed()})]

    def epochs(self) -> list[ListedEpoch]:
        """The collection's epochs, oldest first; needs the admin token, or a local connection."""
        mine = [epoch for epoch in self._listed() if epoch.collection == self.collection]
        if not mine:
            raise StoreError(f"{self.url} is not served; {self.url.rpartition('/')[0]} lists the collections")
        return sorted(mine, key=lambda epoch: epoch.number)

    def _listed(self) -> list[ListedEpoch]:
        root = self.url.rpartition("/")[0]
        status, answer = self._persist("GET", self._path.rpartition("/")[0], None, LARGEST_PLAN_BYTES)
        if status != 200:
            raise StoreError(f"{root} answers {status}: {_message(answer)}")
        try:
            return [ListedEpoch.from_json(each) for each in cast(list[Any], parse_json(answer))]
        except (PlanError, ParameterError, TypeError, KeyError):
            raise StoreError(f"{root} is not a collector's response: {_message(answer)}") from None

    def current(self) -> RemoteEpoch:
        """The newest open epoch and its plan, with ε and the fingerprint checked.

        Raises PrivacyError if the plan's ε exceeds ``max_epsilon``, another PlanError if the plan is invalid, and
        StoreError if there is no collector's response.
        """
        envelope = _fields(self._get("plan", LARGEST_PLAN_BYTES))
        terms, fingerprint, number = (envelope.get(key) for key in ("plan", "fingerprint", "epoch"))
        if terms is None or type(number) is not int or not 0 < number <= _LARGEST_EPOCH:
            raise StoreError(f"{self.url}/plan is not a collector's response")
        plan = Plan.from_contract(Contract.from_json(terms))
        if plan.fingerprint != fingerprint:
            raise PlanError(f"{self.collection}: the plan does not match the fingerprint sent with it")
        if self._max_epsilon is not None and plan.epsilon > self._max_epsilon:
            raise PrivacyError(
                f"{self.collection}: the plan spends epsilon {plan.epsilon}, max_epsilon is {self._max_epsilon}"
            )
        is_open = envelope.get("open") is True
        return RemoteEpoch(plan, self.collection, number, is_open, f"{self.url}/epochs/{number}")

    def upload(
        self,
        epoch: RemoteEpoch,
        body: bytes,
        identity: bytes | None = None,
        *,
        token: str | None = None,
        groups: Mapping[str, str] | None = None,
    ) -> str:
        """Send a report or a batch until it is acknowledged; return ``counted`` or ``repeated``.

        Raises ReportError if the collector refuses it for good. Raises StoreError if patience runs out or the response
        is not a collector's, and its subclass UnauthorizedError if the key or token is wrong: then send the same bytes
        under the same id again later.

        Parameters
        ----------
        epoch: from :meth:`current`.
        body: a report or a batch.
        identity: 16 random bytes, by default new ones. Pass the same id to repeat an upload.
        token: the single-use token, 64 hexadecimal digits, if the collector requires one.
        groups: the user's public groups, such as ``{"country": "DE"}``: at most one value per attribute that the plan
            declares. With a batch, they apply to all of its reports. Nothing protects them.
        """
        chosen_groups(epoch.plan.groups, groups)
        identity = identity or secrets.token_bytes(ID_BYTES)
        return self.send(epoch.number, epoch.plan.fingerprint, body, identity, token, groups)

    def send(
        self,
        number: int,
        fingerprint: str,
        body: bytes,
        identity: bytes,
        token: str | None = None,
        groups: Mapping[str, str] | None = None,
    ) -> str:
        """:meth:`upload`, given only the epoch's number and the plan's fingerprint."""
        from sunzi.wire import is_batch

        kind = "batches" if is_batch(body) else f"reports?plan={fingerprint}"
        upload = Upload(identity, body, None if token is None else parse_token(token), groups or {})
        path = f"{self._path}/epochs/{number}/{kind}"
        status, answer = self._persist("POST", path, upload.to_bytes(), _LARGEST_RECEIPT_BYTES)
        said = _fields(answer)
        if status == 200 and said.get("outcome") in ("counted", "repeated"):
            return str(said["outcome"])
        words = f"({status}): {_message(answer)}"
        if status < 400 or not (isinstance(said.get("error"), str) and isinstance(said.get("message"), str)):
            raise StoreError(f"{self.url} is not a collector's response {words}")
        if status == 401:
            raise UnauthorizedError(f"the collector rejected this key or token {words}")
        raise ReportError(f"the collector refused an upload {words}")

    def groups(self, number: int | None = None) -> dict[str, int]:
        """The number of reports of every public group of an epoch, by default the current one, that may be published.

        Groups are named as in ``country=DE``.
        """
        path = f"epochs/{'current' if number is None else number}/groups.json"
        answer = self._get(path, LARGEST_PLAN_BYTES)
        try:
            rows = cast(list[Any], parse_json(answer))
            return {str(row["group"]): whole_number("reports", row["reports"], 0) for row in rows if row["published"]}
        except (PlanError, ParameterError, TypeError, KeyError):
            raise StoreError(f"{self.url}/{path} is not a collector's response: {_message(answer)}") from None

    def tally(self, number: int | None = None, group: str | None = None) -> tuple[Plan, Tally]:
        """The plan and tally of an epoch, by default the current one.

        Parameters
        ----------
        number: the epoch's number.
        group: only the reports of this public group, such as ``country=DE``.
        """
        which = "current" if number is None else str(number)
        terms = self._get(f"epochs/{which}/plan", LARGEST_PLAN_BYTES)
        if not _fields(terms):
            raise StoreError(f"{self.url}/epochs/{which}/plan is not a collector's response: {_message(terms)}")
        plan = Plan.from_json(terms)
        largest = _COUNTER_BYTES * plan.protocol.tally_layout.length + _LARGEST_HEADER_BYTES
        query = "" if group is None else f"?group={quote(group)}"
        return plan, Tally.from_bytes(self._get(f"epochs/{which}/tally{query}", largest))

    def guarantee(self, number: int) -> dict[str, Any]:
        """What readers of an epoch's published results can learn, as ``batch_guarantee`` and ``facts``, or as
        ``no_batch_guarantee``, why nothing is claimed; empty if the answer has neither.

        Parameters
        ----------
        number: the epoch's number.
        """
        found = _fields(self._get(f"epochs/{number}/guarantee.json", _LARGEST_RECEIPT_BYTES))
        claimed = found.get("batch_guarantee")
        if isinstance(claimed, dict) and type(claimed.get("epsilon")) in (int, float) and "meaning" in claimed:
            return {"batch_guarantee": claimed, "facts": found.get("facts")}
        reason = found.get("no_batch_guarantee")
        return {"batch_guarantee": None, "no_batch_guarantee": reason} if isinstance(reason, str) else {}

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _get(self, path: str, largest: int) -> bytes:
        status, answer = self._persist("GET", f"{self._path}/{path}", None, largest)
        if status == 409 and _fields(answer).get("error") == "TooFewReports":
            raise TooFewReportsError(f"{self.url}/{path} answers 409: {_message(answer)}")
        if status != 200:
            hint = "" if status != 404 or self.is_named else f"; name a collection: {self.url.rpartition('/')[0]}/NAME"
            raise StoreError(f"{self.url}/{path} answers {status}: {_message(answer)}{hint}")
        return answer

    def _persist(self, method: str, path: str, body: bytes | None, largest: int) -> tuple[int, bytes]:
        """Send one request, and retry it while it may still succeed; answers have at most ``largest`` bytes."""
        deadline, pause = time.monotonic() + self._patience, 0.1
        while True:
            seconds = min(_SECONDS, max(_LEAST_SECONDS, deadline - time.monotonic()))
            try:
                status, answer, wait = self._once(method, path, body, largest, seconds)
            except (OSError, ValueError, http.client.HTTPException) as error:
                self._connection.close()
                status, answer, wait = 0, f"{type(error).__name__}: {error}".encode(), None
            if 0 < status < 500 and status not in _AGAIN:
                return status, answer
            # Half of the pause is random, so that clients do not retry in step.
            pause = min(_LONGEST_WAIT, max(pause, wait or 0.0))
            chosen = pause * (0.5 + secrets.randbelow(1000) / 2000)
            if time.monotonic() + chosen > deadline:
                found = f"answers {status}" if status else "could not be reached"
                raise StoreError(f"{self.url} {found}: {_message(answer)}")
            self._sleep(chosen)
            pause *= 2

    def _once(
        self, method: str, path: str, body: bytes | None, largest: int, seconds: float
    ) -> tuple[int, bytes, float | None]:
        """One request, which takes at most this many seconds."""
        deadline = time.monotonic() + seconds
        headers = {**self._headers, **({} if body is None else {"Content-Type": "application/octet-stream"})}
        if self._connection.sock is None:
            self._connect(seconds)
        connection = self._connection
        connection.sock = _SocketWithDeadline.around(connection.sock, deadline)
        connection.request(method, path, body, headers)
        with connection.getresponse() as response:
            answer = response.read(largest + 1)
        if len(answer) > largest:
            connection.close()
            raise StoreError(f"{self.url} is not a collector's response: it has more than {largest} bytes")
        wait = response.headers.get("Retry-After", "")
        is_number = re.fullmatch("[0-9]{1,9}", wait) is not None
        return response.status, answer, float(wait) if is_number else None

    def _connect(self, seconds: float) -> None:
        """Connect in at most this many seconds.

        A thread does it: no timeout bounds a DNS lookup, and each address of the host and the TLS handshake get the
        timeout anew. The thread ends with its lookup or its timeouts.
        """
        connection, outcome = self._disconnected(timeout=seconds), Future[None]()

        def connect() -> None:
            try:
                connection.connect()
                outcome.set_result(None)
            except BaseException as error:
                outcome.set_exception(error)

        threading.Thread(target=connect, name="sunzi-connect", daemon=True).start()
        try:
            outcome.result(seconds)
        except TimeoutError:
            outcome.add_done_callback(lambda _: connection.close())  # nobody uses it by then
            raise TimeoutError("connecting took too long") from None
        self._connection = connection


class _SocketWithDeadline:
    """A socket whose steps all end by a deadline; a timeout alone bounds each step, not their number."""

    def __init__(self, wrapped: socket.socket) -> None:
        self._wrapped, self.deadline = wrapped, 0.0

    @classmethod
    def around(cls, connected: Any, deadline: float) -> Any:
        """The socket with a deadline; a connection that is used again has such a socket already."""
        made = connected if isinstance(connected, cls) else cls(connected)
        made.deadline = deadline
        return made

    def __getattr__(self, name: str) -> Any:
        return getattr(self._wrapped, name)

    def limit(self) -> None:
        """Give the next step the time that is left."""
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError("the answer took too long")
        self._wrapped.settimeout(left)

    def sendall(self, data: bytes) -> None:
        """Send all of the data; the timeout of ``sendall`` bounds all of it."""
        self.limit()
        self._wrapped.sendall(data)

    def makefile(self, mode: str) -> io.BufferedReader:
        """A buffered reader, as :class:`http.client.HTTPResponse` opens it."""
        return io.BufferedReader(_Reader(self, self._wrapped.makefile(mode, buffering=0)))  # type: ignore[call-overload]


class _Reader(io.RawIOBase):
    def __init__(self, connected: _SocketWithDeadline, wrapped: socket.SocketIO) -> None:
        self._connected, self._wrapped = connected, wrapped

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self._connected.limit()
        return self._wrapped.readinto(buffer)

    def close(self) -> None:
        self._wrapped.close()
        super().close()


def _fields(answer: bytes) -> dict[str, Any]:
    """The fields of a JSON object; empty if the response is anything else."""
    try:
        parsed = parse_json(answer)
    except PlanError:
        return {}
    return parsed if isinstance(parsed, dict) else {}


def _message(answer: bytes) -> str:
    said = _fields(answer).get("message")
    text = said if isinstance(said, str) else answer[:_LONGEST_MESSAGE].decode("utf-8", "replace")
    return text if len(text) <= _LONGEST_MESSAGE else f"{text[:_LONGEST_MESSAGE]}…"
