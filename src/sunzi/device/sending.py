"""Sends queued reports over HTTP, each to the epoch that it was made for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sunzi.collector.remote import RemoteCollector, parse_epoch_url
from sunzi.errors import StoreError

if TYPE_CHECKING:
    from sunzi.device.device import QueuedReport

_PATIENCE_SECONDS = 1.0


class Sender:
    """Uploads queued reports over HTTP, with one connection per collection.

    Parameters
    ----------
    secret: an upload key; it is sent to every collector that has queued reports.
    patience: for how many seconds to retry temporary failures, per report.

    >>> from sunzi.device import Device
    >>> Device("device.db", lifetime_epsilon=3).flush(Sender(secret="upload-key"))
    0
    """

    def __init__(self, *, secret: str | None = None, patience: float = _PATIENCE_SECONDS) -> None:
        self._secret, self._patience = secret, patience
        self._remotes: dict[str, RemoteCollector] = {}

    def __call__(self, report: QueuedReport) -> str:
        """Send one report; return ``counted`` or ``repeated``, and raise as :meth:`RemoteCollector.upload` does.

        The collector refuses the report if its epoch has another plan.
        """
        if report.fingerprint is None:
            raise StoreError(
                f"the report for {report.destination!r} was queued by a release that did not store its plan; "
                "pass an upload function of your own"
            )
        collection, number = parse_epoch_url(report.destination)
        if collection not in self._remotes:
            self._remotes[collection] = RemoteCollector(collection, secret=self._secret, patience=self._patience)
        return self._remotes[collection].send(number, report.fingerprint, report.body, report.identity, report.token)

    def close(self) -> None:
        """Close all connections."""
        for remote in self._remotes.values():
            remote.close()
        self._remotes.clear()
