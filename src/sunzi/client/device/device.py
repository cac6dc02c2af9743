"""A device that reports over months: consent, memoised noise, a lifetime budget, and sending until reports count."""

from __future__ import annotations

import hmac
import logging
import secrets
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

from ..client import MOST_BITS, MOST_WORK
from ..epsilon import Epsilon, parse_epsilon
from ..errors import BudgetError, DomainError, ParameterError, ReportError, StoreError, shown
from ..groups import chosen_groups
from ..plan import Plan
from ..reports import encode_report
from .addresses import canonical_epoch
from .consent import VARIABLE, do_not_track
from .ledger import Ledger, QueuedReport
from .memoising import KEY_BYTES, MemoisedReport, MemoisingClient
from .preview import Preview, describe, notice
from .remote import Sender, UnauthorizedError
from .uploads import ID_BYTES, Upload, parse_token

Send = Callable[[QueuedReport], object]
OnRefused = Callable[[QueuedReport, ReportError], object]
Outcome = Literal["queued", "repeated", "kept", "background", "silent", "off"]
WhenSpent = Literal["keep", "background", "refuse"]
Background = MemoisedReport | None


@dataclass(frozen=True)
class QueueResult:
    """The result of :meth:`Device.queue`.

    >>> from sunzi.client import Device, load_plan
    >>> device = Device("device.db", lifetime_epsilon=4, max_epsilon=1)
    >>> device.queue(load_plan("plan.json"), "browser", "Opera", "https://a.example/v1/collections/b/epochs/1")
    QueueResult(outcome='off', outside=False, cost=Fraction(0, 1), identity=None)
    """

    outcome: Outcome
    """``queued``; ``repeated``: the attribute had already reported in this epoch; ``kept``, ``background``, ``silent``:
    the budget has ended, and the latest report, a background report or nothing was queued; ``off``: the device is off.
    """
    outside: bool = False
    """Whether the value was outside the domain."""
    cost: Fraction = Fraction(0)
    """The ε spent on this report."""
    identity: bytes | None = None
    """The id of the report, if one was queued."""


class Device:
    """A device that reports only while its user agrees, never spends more ε than its caps, and keeps every report until
    a collector acknowledges it.

    A device is off until :meth:`enable` is called, and while ``DO_NOT_TRACK`` is set. Then nothing is stored, queued,
    debited or sent.

    Parameters
    ----------
    path: the device's SQLite file, created by :meth:`enable`.
    lifetime_epsilon: the most that each attribute may ever spend, over all plans and collections: ε for every different
        value that it may report.
    max_epsilon: the largest ε to accept in a plan. A plan from the network can be valid and still have ε = 32.
    caps: different caps for some attributes.
    when_spent: what to do with a new value that the budget cannot pay.

        - "keep": from then on repeat the latest report, whatever the value is. Nobody can tell before the plan changes,
          but statistics lag: a device that has spent its budget keeps voting for what it reported last.
        - "background": report as for a value outside the domain, whose ε is set aside with the first report. Estimates
          lose the value and drift towards equal shares.
        - "refuse": report nothing from then on, which reveals when the budget ended.
    max_bits, max_work: what one report may cost the device (docs/format.md, 11).

    >>> from sunzi.client import Device, load_plan
    >>> plan, url = load_plan("plan.json"), "https://collector.example/v1/collections/default/epochs"
    >>> device = Device("device.db", lifetime_epsilon=4, max_epsilon=1)
    >>> device.queue(plan, "browser", "Firefox", f"{url}/1").outcome
    'off'
    >>> device.enable()  # the user has agreed
    True
    >>> [device.queue(plan, "browser", "Firefox", f"{url}/{day}").outcome for day in (1, 1, 2)]
    ['queued', 'repeated', 'queued']
    >>> device.spent("browser")
    Fraction(1, 1)
    """

    def __init__(
        self,
        path: str | Path,
        lifetime_epsilon: Epsilon,
        *,
        max_epsilon: Epsilon,
        caps: Mapping[str, Epsilon] | None = None,
        when_spent: WhenSpent = "keep",
        max_bits: int = MOST_BITS,
        max_work: int = MOST_WORK,
    ) -> None:
        if when_spent not in ("keep", "background", "refuse"):
            raise ParameterError(f"when_spent must be keep, background or refuse, got {shown(when_spent)}")
        self.path = Path(path).absolute()
        self.when_spent, self._limits = when_spent, (max_bits, max_work)
        self._cap, self._max_epsilon = parse_epsilon(lifetime_epsilon), parse_epsilon(max_epsilon)
        self._caps = {attribute: parse_epsilon(cap) for attribute, cap in (caps or {}).items()}
        self._ledger = Ledger(path)
        self._previewed: bytes | None = None

    @property
    def enabled(self) -> bool:
        """Whether the device may report: the user has agreed, and ``DO_NOT_TRACK`` is not set."""
        return not do_not_track() and self._ledger.key() is not None

    def enable(self) -> bool:
        """Turn the device on, once the user has agreed; returns whether it is on now. ``DO_NOT_TRACK`` wins."""
        if do_not_track():
            return False
        self._ledger.enable(self._previewed or secrets.token_bytes(KEY_BYTES))
        self._previewed = None  # another process may turn the device off: no key is used again
        return True

    def disable(self) -> None:
        """Turn the device off: delete its key, its noise and all unsent reports.

        It keeps what was spent, and in which epochs it reported. Turned on again, it reports from the next epoch on,
        with a new key.
        """
        self._ledger.disable()

    def client(self, plan: Plan, attribute: str) -> MemoisingClient:
        """A memoising client with this device's key. It does not debit reports: prefer :meth:`queue`."""
        key = None if do_not_track() else self._ledger.key()
        if key is None:
            raise ParameterError(f"the device is off; call enable() once the user has agreed, with {VARIABLE} not set")
        return self._client(plan, key, attribute)

    def _client(self, plan: Plan, key: bytes, attribute: str) -> MemoisingClient:
        bits, work = self._limits
        return MemoisingClient(plan, key, attribute, max_epsilon=self._max_epsilon, max_bits=bits, max_work=work)

    def notice(self, plan: Plan, attribute: str) -> str:
        """A text for the first run, which says what is asked and sent, this device's budget, and how to say no.

        Parameters
        ----------
        plan, attribute: as for :meth:`queue`.
        """
        return notice(plan, attribute, self._caps.get(attribute, self._cap))

    def preview(
        self,
        plan: Plan,
        attribute: str,
        value: object,
        destination: str,
        *,
        token: str | None = None,
        groups: Mapping[str, str] | None = None,
    ) -> Preview:
        """What :meth:`queue` would send for a value now, and what it says. Nothing is stored, spent or sent.

        Before the user agrees, the device has no stored key; :meth:`enable` of the same object stores the key that the
        preview was made with.

        Parameters
        ----------
        plan, attribute, value, destination, token, groups: as for :meth:`queue`.
        """
        epoch, named = canonical_epoch(destination), None if token is None else parse_token(token)
        chosen_groups(plan.groups, groups)
        key = self._ledger.key()
        if key is None:
            key = self._previewed = self._previewed or secrets.token_bytes(KEY_BYTES)
        client, index = self._client(plan, key, attribute), _index(plan, value)
        made, background = client.memoise(index), self._background(client)
        if self._ledger.exists():
            with self._ledger.transaction(keep=False) as connection:
                outcome, body, _ = self._pay(connection, client, made, background)
        else:
            outcome, body, _ = self._pay(None, client, made, background)
        upload = None if body is None else Upload(client.report_id(epoch), body, named, groups or {})
        is_random = index is None or outcome == "background"
        return describe(plan, epoch, upload, is_latest=outcome == "kept", is_random=is_random)

    def queue(
        self,
        plan: Plan,
        attribute: str,
        value: object,
        destination: str,
        *,
        token: str | None = None,
        groups: Mapping[str, str] | None = None,
        several: bool = False,
    ) -> QueueResult:
        """Make a report, debit its ε, and queue it for an epoch.

        An attribute reports once per epoch: a second call with the same epoch spends and queues nothing, whatever the
        value. The report's id is derived from the device key, the attribute and the epoch, so the collector would not
        count it again either.

        A value that this attribute has already reported under the same plan costs nothing, since its bytes are the
        same; under plans of numbers, ranges, tables and texts, nor does one with the same answer to the question that
        the device keeps. A value outside the domain is reported as "other" if the plan has that, else as a background
        report: sending nothing would reveal it.

        Raises BudgetError if the caps do not allow even a first report, PrivacyError if the plan's ε exceeds the
        device's ``max_epsilon``, and ParameterError if the plan was loaded without its label file. Then nothing is
        spent or queued.

        Parameters
        ----------
        plan: the plan of the epoch.
        attribute: what is measured, with the same name in all collections.
        value: a label or index of the plan's domain, a number or date of its range, a record, or any text if the domain
            is open.
        destination: the epoch's URL; stored in its canonical spelling.
        token: the single-use token to spend, if the collector requires one.
        groups: the user's public groups, such as ``{"country": "DE"}``: at most one value per attribute that the plan
            declares. Nothing protects them.
        several: queue this report under a random id even if the attribute has already reported in this epoch. Such a
            device weighs more than others, and intervals assume one report per device.
        """
        epoch = canonical_epoch(destination)
        if token is not None:
            parse_token(token)
        named = ",".join(chosen_groups(plan.groups, groups)) or None
        key = None if do_not_track() else self._ledger.key()
        if key is None:
            return QueueResult("off")
        client, index = self._client(plan, key, attribute), _index(plan, value)
        made, background = client.memoise(index), self._background(client)
        identity = secrets.token_bytes(ID_BYTES) if several else client.report_id(epoch)
        outside = index is None
        with self._ledger.transaction() as connection:
            if connection.execute("SELECT key FROM device").fetchone() != (key,):
                return QueueResult("off", outside)  # turned off meanwhile
            query = "SELECT 1 FROM reported WHERE attribute = ? AND epoch = ?"
            if not several and connection.execute(query, (attribute, epoch)).fetchone():
                return QueueResult("repeated", outside, identity=identity)
            outcome, body, cost = self._pay(connection, client, made, background)
            if body is None:
                return QueueResult(outcome, outside, cost)
            if not several:
                connection.execute("INSERT INTO reported VALUES (?, ?)", (attribute, epoch))
            connection.execute(
                "INSERT INTO outbox (id, attribute, destination, body, fingerprint, token, groups)"
                " VALUES (?, ?, ?, ?, ?, ?, ?)",
                (identity, None if several else attribute, epoch, body, plan.fingerprint, token, named),
            )
        return QueueResult(outcome, outside, cost, identity)

    def _background(self, client: MemoisingClient) -> Background:
        """The report that follows the last one that the budget can pay, if it is of that kind."""
        return client.memoise(None) if self.when_spent == "background" else None

    def _pay(
        self,
        connection: sqlite3.Connection | None,
        client: MemoisingClient,
        made: MemoisedReport,
        background: Background,
    ) -> tuple[Outcome, bytes | None, Fraction]:
        """What to queue, if anything, and what it costs; debits are written to the ledger, if there is one."""
        plan, attribute = client.plan, client.attribute
        paid: set[bytes] = set()
        spent, latest, is_spent = Fraction(0), None, False
        if connection is not None:
            paid, spent = self._ledger.debits(connection, attribute)
            latest, is_spent = self._ledger.latest(connection, attribute, plan.fingerprint)
        cap = self._caps.get(attribute, self._cap)
        # The background report is set aside first, so that it can always be sent.
        wanted = dict.fromkeys(_entry(each) for each in (background, made) if each is not None)
        due = [each for each in wanted if each not in paid]
        body: bytes | None = encode_report(plan.protocol.report_layout, made.report)
        outcome: Outcome = "queued"
        if is_spent or spent + len(due) * plan.epsilon > cap:
            if not paid:
                raise BudgetError(
                    f"{attribute!r} may spend epsilon {cap} in its lifetime, and its first report costs "
                    f"{len(due) * plan.epsilon}; raise the cap"
                )
            if background is not None:
                due = [each for each in due if each == _entry(background)]
                is_affordable = spent + len(due) * plan.epsilon <= cap
                body = encode_report(plan.protocol.report_layout, background.report) if is_affordable else None
                due, outcome = due if is_affordable else [], "background"
            else:
                # For good: choosing a stored report by value would go on revealing changes.
                due, is_spent = [], True
                body, outcome = latest if self.when_spent == "keep" else None, "kept"
        if connection is not None:
            self._ledger.debit(connection, attribute, due, plan.epsilon)
            self._ledger.remember(connection, attribute, plan.fingerprint, body or latest, is_spent)
        return "silent" if body is None else outcome, body, len(due) * plan.epsilon

    def spent(self, attribute: str) -> Fraction:
        """The ε that an attribute has spent so far."""
        if not self._ledger.exists():
            return Fraction(0)
        with self._ledger.transaction() as connection:
            return self._ledger.debits(connection, attribute)[1]

    def waiting(self) -> list[QueuedReport]:
        """The reports that are not acknowledged yet, oldest first."""
        return self._ledger.waiting()

    def flush(self, upload: Send | None = None, on_refused: OnRefused | None = None) -> int:
        """Send every queued report to its epoch, and delete the acknowledged ones; return how many these are.

        Parameters
        ----------
        upload: sends one report, by default a :class:`Sender`. It returns once the report is acknowledged. It raises
            ReportError if the report is refused for good, which deletes it, and StoreError if it may succeed later:
            then the other reports for this destination wait for the next flush.
        on_refused: called with every report that is refused for good, and the error; by default it is logged as a
            warning of ``sunzi.client``.
        """
        if upload is None:
            with closing(Sender()) as sender:
                return self.flush(sender, on_refused)
        done, waits = 0, set()
        for report in self.waiting():
            if report.destination in waits or do_not_track() or not self._ledger.is_waiting(report):
                continue
            is_refused = False
            try:
                upload(report)
                done += 1
            except ReportError as error:
                is_refused = True
                (on_refused or _log_refusal)(report, error)
            except StoreError as error:
                # An unknown token affects only this report, an unknown key the whole destination.
                if report.token is None or not isinstance(error, UnauthorizedError):
                    waits.add(report.destination)
                continue
            self._ledger.settle(report, is_refused=is_refused)
        return done


def _entry(made: MemoisedReport) -> bytes:
    """What the ledger calls a report, which does not tell its noise."""
    return hmac.digest(made.seed, b"ledger entry", "sha256")


def _index(plan: Plan, value: object) -> Any:
    """The index of a value, None for one outside the domain."""
    try:
        return plan.domain.index(value)
    except DomainError:
        return None


def _log_refusal(report: QueuedReport, error: ReportError) -> None:
    logging.getLogger("sunzi.client").warning("the report for %s is deleted: %s", report.destination, error)
