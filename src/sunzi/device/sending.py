"""Sending what a device has queued: each report to the epoch that it was made for, and nowhere else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sunzi.collector.remote import RemoteCollector, parse_epoch_url
from sunzi.errors import StoreError

if TYPE_CHECKING:
    from sunzi.device.device import QueuedReport

_PATIENCE_SECONDS = 1.0


class Sender:
    """Uploads waiting reports over HTTP, one connection a collection: ``device.flush(Sender(secret=…))``.

    ``secret`` is an uploader's key; every collector that reports wait for is sent it. ``patience`` seconds are spent on
    trying again what may succeed later, a destination at a time.
    """

    def __init__(self, *, secret: str | None = None, patience: float = _PATIENCE_SECONDS) -> None:
        self._secret, self._patience = secret, patience
        self._remotes: dict[str, RemoteCollector] = {}

    def __call__(self, report: QueuedReport) -> str:
        """Send one report; return ``counted`` or ``repeated``, and raise as :meth:`RemoteCollector.upload` does.

        The collector is told which plan the report was made under, and refuses it if its epoch has another.
        """
        if report.fingerprint is None:
            raise StoreError(
                f"the report for {report.destination!r} was queued by a release that did not note its plan; "
                "send it by an upload of your own"
            )
        collection, number = parse_epoch_url(report.destination)
        if collection not in self._remotes:
            self._remotes[collection] = RemoteCollector(collection, secret=self._secret, patience=self._patience)
        return self._remotes[collection].send(number, report.fingerprint, report.body, report.identity, report.token)

    def close(self) -> None:
        """Hang up."""
        for remote in self._remotes.values():
            remote.close()
        self._remotes.clear()
