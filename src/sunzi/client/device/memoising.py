"""A client that sends the same bytes whenever it reports the same value, so that repeated reports do not average out.

All randomness of a report, including the choice of a modulus, is derived by HMAC-SHA256 from the device key, the
attribute, the plan and the value. The collection's name is not used: a renamed collection gets no fresh noise. Another
plan or value does, and costs its ε once, which a ledger can cap.

Under plans that draw a question for every report (the level of an ordered value, a table of a record, a view of a text,
the rounding of a number) the device draws it once for all values, and derives the noise from the cell that answers it
instead of the value. So values with the same cell give the same bytes and cost ε together: at most ε for every node of
one level, every cell of one table or view, or every point that numbers are rounded to.

This is local differential privacy against an attacker who cannot break HMAC-SHA256 and does not have the key. With the
key, an attacker can find the value of a report by trying all values.
"""

from __future__ import annotations

import hmac
import struct
from typing import Any, NamedTuple

from ..client import MOST_BITS, MOST_WORK, Client, random_index
from ..epsilon import Epsilon
from ..errors import ParameterError
from ..plan import Plan
from ..randomness import DerivedSource
from ..reports import Report, encode_report
from .addresses import canonical_epoch
from .uploads import ID_BYTES

KEY_BYTES = 32
_PURPOSE = b"sunzi memoised report, version 1\0"
_QUESTION_PURPOSE = b"sunzi memoised question, version 1\0"
_ID_PURPOSE = b"sunzi report id, version 1\0"
_LENGTH = struct.Struct("<I")
_OUTSIDE = _LENGTH.pack(0xFFFFFFFF)


class MemoisedReport(NamedTuple):
    """A report that is always the same for its value."""

    seed: bytes
    """The secret that all words of the report are derived from. Equal seeds are equal reports."""
    report: Report
    kept: tuple[int, int] | None
    """The question that the device keeps, and the cell of the value that answers it, under plans with questions."""


class MemoisingClient:
    """Reports one attribute of one device under one plan; equal values give equal bytes.

    Parameters
    ----------
    plan: the plan.
    key: the device's secret, ``secrets.token_bytes(32)``; drawn once per device and never sent.
    attribute: what is measured, with the same name in all collections.
    max_epsilon: the largest ε to accept; PrivacyError is raised if the plan's is larger.
    fingerprint: the expected fingerprint of the plan, if known.
    max_bits, max_work: what one report may cost the device (docs/format.md, 11).

    >>> from sunzi.client import load_plan
    >>> client = MemoisingClient(load_plan("plan.json"), bytes(32), "browser", max_epsilon=1)
    >>> client.report("Firefox") == client.report("Firefox")
    True
    """

    def __init__(
        self,
        plan: Plan,
        key: bytes,
        attribute: str,
        *,
        max_epsilon: Epsilon,
        fingerprint: str | bytes | None = None,
        max_bits: int = MOST_BITS,
        max_work: int = MOST_WORK,
    ) -> None:
        if len(key) != KEY_BYTES:
            raise ParameterError(f"a device key must have {KEY_BYTES} bytes, got {len(key)}")
        if not attribute:
            raise ParameterError("attribute must name what is measured, got an empty string")
        if plan.domain.has_labels and plan.domain.labels is None:
            # Not a DomainError, which would mean that a value is outside the domain and cause a background report.
            raise ParameterError("this plan's labels are in a separate file; load the plan with labels=PATH")
        # It refuses what any client refuses.
        Client(plan, max_epsilon=max_epsilon, fingerprint=fingerprint, max_bits=max_bits, max_work=max_work)
        self.plan, self.attribute = plan, attribute
        self._key = key

    def report(self, value: object) -> bytes:
        """The report of a value."""
        return self.report_index(self.plan.domain.index(value))

    def report_index(self, index: Any) -> bytes:
        """The report of the value with this index; None is the background report of values outside the domain."""
        return encode_report(self.plan.protocol.report_layout, self.memoise(index).report)

    def memoise(self, index: Any) -> MemoisedReport:
        """The report of the value with this index, or of all values outside the domain, and what it derives from.

        The seed is HMAC(device key, purpose, fingerprint, attribute, value). Each text is preceded by its length, so
        that different inputs never encode alike. Any value outside the domain is encoded as the length 2^32 − 1
        without text. If the plan draws a question for every report, the number of the question and that of the cell,
        with a space between them, take the place of the value.
        """
        domain, protocol = self.plan.domain, self.plan.protocol
        if index is not None:
            domain.check_index(index)
        outside = self._sign(_PURPOSE, _OUTSIDE)
        asked = random_index(domain, DerivedSource(outside)) if index is None else index
        kept = protocol.draw_cell(asked, DerivedSource(self._sign(_QUESTION_PURPOSE, b"")))
        if kept is not None:
            seed = self._sign(_PURPOSE, _text(f"{kept[0]} {kept[1]}"))
            return MemoisedReport(seed, protocol.answer(*kept, DerivedSource(seed)), kept)
        seed = outside if index is None else self._sign(_PURPOSE, _text(domain.key_of(index)))
        source = DerivedSource(seed)
        if index is None:
            index = random_index(domain, source)
        (report,) = protocol.make_reports([index], source)
        return MemoisedReport(seed, report, None)

    def _sign(self, purpose: bytes, value: bytes) -> bytes:
        return hmac.digest(self._key, purpose + self.plan.digest + _text(self.attribute) + value, "sha256")

    def report_id(self, epoch: str) -> bytes:
        """The id of this attribute's report in an epoch: HMAC(device key, purpose, attribute, epoch), 16 bytes of it.

        It does not depend on the plan or the value, so a collector counts one report of a device per epoch.

        Parameters
        ----------
        epoch: the epoch's URL; all spellings give the same id.
        """
        message = _ID_PURPOSE + _text(self.attribute) + _text(canonical_epoch(epoch))
        return hmac.digest(self._key, message, "sha256")[:ID_BYTES]

    def __repr__(self) -> str:
        """The plan and attribute, never the key."""
        return f"MemoisingClient({self.plan.protocol.name}, epsilon {self.plan.epsilon}, {self.attribute!r})"


def _text(text: str) -> bytes:
    encoded = text.encode()
    return _LENGTH.pack(len(encoded)) + encoded
