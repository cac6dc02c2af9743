"""A collector seen from afar, by its address: fetch the plan, upload until acknowledged, read the tally.

An upload keeps its id and its bytes however often it is sent, so that it is counted once. Needs no extra.
"""

from __future__ import annotations

import http.client
import json
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode, urlsplit

from sunzi.collection.records import ID_BYTES, check_name
from sunzi.contract import Contract
from sunzi.errors import ParameterError, PlanError, ReportError, StoreError
from sunzi.plan import Plan
from sunzi.tally import Tally

DEFAULT_COLLECTION = "default"

_AGAIN = (408, 425, 429)  # and every 5xx: the trouble of a server or a proxy may pass, whatever its number
_SECONDS = 30.0
_LONGEST_WAIT = 60.0


@dataclass(frozen=True)
class RemoteEpoch:
    """What a client must know to report: the plan, and the epoch that its reports name."""

    plan: Plan
    collection: str
    number: int
    is_open: bool


class RemoteCollector:
    """One collection of a collector: ``http://host:port``, or ``http://host:port/v1/collections/NAME``.

    ``patience`` seconds are spent on trying again what may succeed later: a full queue, a restart, a lost connection.
    """

    def __init__(
        self,
        address: str,
        *,
        secret: str | None = None,
        patience: float = 60.0,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        parts = urlsplit(address)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ParameterError(f"a collector's address begins with http:// or https://, got {address!r}")
        steps = [step for step in parts.path.split("/") if step]
        self.collection, self._base = DEFAULT_COLLECTION, steps
        if len(steps) >= 3 and steps[-3:-1] == ["v1", "collections"]:
            self.collection, self._base = check_name(steps[-1]), steps[:-3]
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        self._connection = kind(parts.hostname, parts.port, timeout=_SECONDS)
        self._headers = {} if secret is None else {"Authorization": f"Bearer {secret}"}
        self._patience, self._sleep = patience, sleep

    def current(self) -> RemoteEpoch:
        """The epoch that is open now, and its plan, checked as a client must."""
        envelope = json.loads(self._get("plan"))
        plan = Plan.from_contract(Contract.from_json(envelope["plan"]))
        if plan.fingerprint != envelope["fingerprint"]:
            raise PlanError(f"{self.collection}: the plan does not have the fingerprint that the collector names")
        return RemoteEpoch(plan, self.collection, int(envelope["epoch"]), bool(envelope["open"]))

    def upload(self, epoch: RemoteEpoch, body: bytes, identity: bytes | None = None) -> str:
        """Send a report or a batch until it is acknowledged; return ``counted`` or ``repeated``.

        Raises ReportError if the collector refuses it for good, StoreError if patience runs out: then the same bytes
        under the same id may be sent again at any later time.
        """
        from sunzi.wire import is_batch

        query = {"id": (identity or secrets.token_bytes(ID_BYTES)).hex()}
        if not is_batch(body):
            query["plan"] = epoch.plan.fingerprint
        kind = "batches" if is_batch(body) else "reports"
        path = f"epochs/{epoch.number}/{kind}?{urlencode(query)}"
        status, answer = self._persist("POST", path, body)
        if status != 200:
            raise ReportError(f"the collector refused an upload ({status}): {_message(answer)}")
        outcome: str = json.loads(answer)["outcome"]
        return outcome

    def tally(self, number: int | None = None) -> tuple[Plan, Tally]:
        """An epoch's plan and tally; of the current epoch, unless a number is given."""
        which = "current" if number is None else str(number)
        plan = Plan.from_json(self._get(f"epochs/{which}/plan"))
        return plan, Tally.from_bytes(self._get(f"epochs/{which}/tally"))

    def close(self) -> None:
        """Hang up."""
        self._connection.close()

    def _get(self, path: str) -> bytes:
        status, answer = self._persist("GET", path, None)
        if status != 200:
            raise StoreError(f"{self._address(path)} answers {status}: {_message(answer)}")
        return answer

    def _address(self, path: str) -> str:
        return "/" + "/".join([*self._base, "v1", "collections", self.collection, path])

    def _persist(self, method: str, path: str, body: bytes | None) -> tuple[int, bytes]:
        """One request, again and again while it may still succeed."""
        deadline, pause = time.monotonic() + self._patience, 0.1
        while True:
            try:
                status, answer, wait = self._once(method, self._address(path), body)
            except (OSError, http.client.HTTPException) as error:
                self._connection.close()
                status, answer, wait = 0, f"{type(error).__name__}: {error}".encode(), None
            if 0 < status < 500 and status not in _AGAIN:
                return status, answer
            # Half of the wait is random, so that thousands of clients do not come back together.
            pause = min(_LONGEST_WAIT, max(pause, wait or 0.0))
            chosen = pause * (0.5 + secrets.randbelow(1000) / 2000)
            if time.monotonic() + chosen > deadline:
                host = f"{self._connection.host}:{self._connection.port}"
                raise StoreError(
                    f"{host} could not be reached, or refused ({status or 'no answer'}): {_message(answer)}"
                )
            self._sleep(chosen)
            pause *= 2

    def _once(self, method: str, path: str, body: bytes | None) -> tuple[int, bytes, float | None]:
        headers = {**self._headers, **({} if body is None else {"Content-Type": "application/octet-stream"})}
        self._connection.request(method, path, body, headers)
        response = self._connection.getresponse()
        wait = response.headers.get("Retry-After", "")
        return response.status, response.read(), float(wait) if wait.isdigit() else None


def _message(answer: bytes) -> str:
    try:
        parsed: Any = json.loads(answer)
        return str(parsed["message"])
    except (ValueError, KeyError, TypeError):
        return answer[:200].decode("utf-8", "replace")
