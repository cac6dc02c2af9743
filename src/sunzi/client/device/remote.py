"""Sending to a collector over HTTP: fetch the plan, upload until acknowledged.

An upload is retried with the same id and bytes, so it is counted once. Only a collector's own JSON counts as an
acknowledgement or a refusal; responses of proxies and captive portals do not, and redirects are not followed.
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
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from ..epsilon import Epsilon, parse_epsilon
from ..errors import ParameterError, PlanError, PrivacyError, ReportError, StoreError
from ..groups import chosen_groups
from ..plan import Plan
from ..reports import is_batch
from ..strict_json import parse_json
from .addresses import Address, parse_collection, parse_epoch
from .uploads import ID_BYTES, Upload, parse_token

if TYPE_CHECKING:
    from .ledger import QueuedReport

LARGEST_PLAN_BYTES = 1 << 25
"""The largest answer that is read as a plan."""
LARGEST_RECEIPT_BYTES = 1 << 16
LARGEST_EPOCH = 1 << 31

_AGAIN = (408, 421, 425, 429)  # and every 5xx: these may be temporary
_SECONDS = 30.0
_LEAST_SECONDS = 1.0  # an attempt gets this long even without patience
_LONGEST_WAIT = 60.0
_LONGEST_MESSAGE = 200
_PATIENCE_SECONDS = 1.0


class UnauthorizedError(StoreError):
    """The key or token is unknown. The same upload can still be counted with the right one.

    >>> import sunzi
    >>> from contextlib import closing
    >>> from sunzi.client import RemoteCollection
    >>> from sunzi.collector import Settings, UploadKey, serve
    >>> plan = sunzi.make_plan("grr", ["apple", "pear"], epsilon=1)
    >>> settings = Settings(upload_keys=(UploadKey("app", bytes(32), reports_per_minute=100),))
    >>> with serve(plan, settings=settings) as running, closing(RemoteCollection(running.url, max_epsilon=1)) as remote:
    ...     remote.upload(remote.current(), plan.client().report("pear"))
    Traceback (most recent call last):
        ...
    sunzi.client.device.remote.UnauthorizedError: the collector rejected this key or token (401): send an upload ...
    """


@dataclass(frozen=True)
class RemoteEpoch:
    """The plan, and the epoch that reports must name.

    >>> import sunzi
    >>> from sunzi.client import RemoteCollection
    >>> from sunzi.collector import serve
    >>> plan = sunzi.make_plan("grr", ["apple", "pear"], epsilon=1)
    >>> with serve({"fruit": plan}) as running:
    ...     remote = RemoteCollection(f"{running.url}/v1/collections/fruit", max_epsilon=1)
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


class RemoteCollection:
    """One collection of a collector.

    Parameters
    ----------
    address: ``http://HOST:PORT`` for the collection ``default``, or ``http://HOST:PORT/v1/collections/NAME``.
    max_epsilon: the largest ε to accept in a plan; None accepts any, for operators and simulations.
    secret: an upload key.
    patience: for how many seconds to retry temporary failures: a full queue, a restart, a lost connection. A request
        takes at most 30 seconds of it.
    sleep: called to pause between attempts.

    >>> import sunzi
    >>> from sunzi.client import RemoteCollection
    >>> from sunzi.collector import serve
    >>> with serve(sunzi.make_plan("grr", ["yes", "no"], epsilon=1)) as collector:
    ...     remote = RemoteCollection(collector.url, max_epsilon=1)
    ...     epoch = remote.current()
    ...     print(remote.upload(epoch, epoch.plan.client().report("yes")))
    ...     remote.close()
    counted
    """

    plan_kind: ClassVar[type[Plan]] = Plan
    """The class that plans are read as."""
    error_kinds: ClassVar[Mapping[str, type[StoreError]]] = {}
    """The errors of refused requests, by the names that a collector gives them."""

    def __init__(
        self,
        address: str,
        *,
        max_epsilon: Epsilon | None,
        secret: str | None = None,
        patience: float = 60.0,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        if secret is not None and not re.fullmatch("[ -~]+", secret):
            raise ParameterError("an upload key is printable ASCII on one line")
        parsed, self.collection = parse_collection(address)
        self.url, self._path = str(parsed), "/" + "/".join(parsed.steps)
        self.is_named = Address.parse(address).steps == parsed.steps
        kind = http.client.HTTPSConnection if parsed.scheme == "https" else http.client.HTTPConnection
        self._disconnected = partial(kind, parsed.host, parsed.port)
        self._connection = self._disconnected()
        self._max_epsilon = None if max_epsilon is None else parse_epsilon(max_epsilon)
        self._headers = {} if secret is None else {"Authorization": f"Bearer {secret}"}
        self._patience, self._sleep = patience, sleep

    def current(self) -> RemoteEpoch:
        """The newest open epoch and its plan, with ε and the fingerprint checked.

        Raises PrivacyError if the plan's ε exceeds ``max_epsilon``, another PlanError if the plan is invalid, and
        StoreError if there is no collector's response.
        """
        envelope = fields_of(self._get("plan", LARGEST_PLAN_BYTES))
        terms, fingerprint, number = (envelope.get(key) for key in ("plan", "fingerprint", "epoch"))
        if terms is None or type(number) is not int or not 0 < number <= LARGEST_EPOCH:
            raise StoreError(f"{self.url}/plan is not a collector's response")
        plan = self.plan_kind.from_terms(terms)
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
        kind = "batches" if is_batch(body) else f"reports?plan={fingerprint}"
        upload = Upload(identity, body, None if token is None else parse_token(token), groups or {})
        path = f"{self._path}/epochs/{number}/{kind}"
        status, answer = self._persist("POST", path, upload.to_bytes(), LARGEST_RECEIPT_BYTES)
        said = fields_of(answer)
        if status == 200 and said.get("outcome") in ("counted", "repeated"):
            return str(said["outcome"])
        words = f"({status}): {message_of(answer)}"
        is_refusal = isinstance(said.get("error"), str) and isinstance(said.get("message"), str)
        # A redirect that was followed would have turned POST into GET, which answers 405.
        if status < 400 or status == 405 or not is_refusal:
            raise StoreError(f"{self.url} is not a collector's response {words}")
        if status == 401:
            raise UnauthorizedError(f"the collector rejected this key or token {words}")
        raise ReportError(f"the collector refused an upload {words}")

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _get(self, path: str, largest: int) -> bytes:
        status, answer = self._persist("GET", f"{self._path}/{path}", None, largest)
        if status != 200:
            hint = "" if status != 404 or self.is_named else f"; name a collection: {self.url.rpartition('/')[0]}/NAME"
            kind = self.error_kinds.get(str(fields_of(answer).get("error")), StoreError)
            raise kind(f"{self.url}/{path} answers {status}: {message_of(answer)}{hint}")
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
                raise StoreError(f"{self.url} {found}: {message_of(answer)}")
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
        if response.status < 200:  # its final answer would be taken for that of the next request
            raise http.client.HTTPException(f"unexpected status {response.status}")
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


class Sender:
    """Uploads queued reports over HTTP, with one connection per collection.

    Parameters
    ----------
    secret: an upload key; it is sent to every collector that has queued reports.
    patience: for how many seconds to retry temporary failures, per report.

    >>> from sunzi.client import Device, Sender
    >>> Device("device.db", lifetime_epsilon=4, max_epsilon=1).flush(Sender(secret="upload-key"))
    0
    """

    def __init__(self, *, secret: str | None = None, patience: float = _PATIENCE_SECONDS) -> None:
        self._secret, self._patience = secret, patience
        self._remotes: dict[str, RemoteCollection] = {}

    def __call__(self, report: QueuedReport) -> str:
        """Send one report; return ``counted`` or ``repeated``, and raise as :meth:`RemoteCollection.upload` does.

        The collector refuses the report if its epoch has another plan.
        """
        collection, number = parse_epoch(report.destination)
        if collection not in self._remotes:
            self._remotes[collection] = RemoteCollection(
                collection, max_epsilon=None, secret=self._secret, patience=self._patience
            )
        return self._remotes[collection].send(
            number, report.fingerprint, report.body, report.identity, report.token, report.groups
        )

    def close(self) -> None:
        """Close all connections."""
        for remote in self._remotes.values():
            remote.close()
        self._remotes.clear()


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


def fields_of(answer: bytes) -> dict[str, Any]:
    """The fields of a JSON object; empty if the response is anything else."""
    try:
        parsed = parse_json(answer)
    except PlanError:
        return {}
    return parsed if isinstance(parsed, dict) else {}


def message_of(answer: bytes) -> str:
    """What a response says, short enough for an error message."""
    said = fields_of(answer).get("message")
    text = said if isinstance(said, str) else answer[:_LONGEST_MESSAGE].decode("utf-8", "replace")
    text = "".join(each if each.isprintable() else "�" for each in text)  # it may be logged
    return text if len(text) <= _LONGEST_MESSAGE else f"{text[:_LONGEST_MESSAGE]}…"
