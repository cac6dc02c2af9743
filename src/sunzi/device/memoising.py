"""A client that sends the same bytes whenever it reports the same value: noise that is drawn once cannot be averaged
away.

All randomness of a report, the choice of a modulus included, is derived from a device key, the attribute, the plan's
terms and the value, by HMAC-SHA256. The name of a collection plays no part: a renamed collection gets no fresh noise.
Another plan does, and so does another value: each costs its ε once, which a ledger can cap.

This is local differential privacy against those who cannot break HMAC-SHA256 and do not have the key: with the key and
an unsent report, the value is found by trying all of them.
"""

from __future__ import annotations

import hmac
import struct
from decimal import Decimal
from fractions import Fraction

from sunzi.client import Client
from sunzi.errors import ParameterError
from sunzi.numerics.randomness import DerivedSource
from sunzi.plan import Plan

KEY_BYTES = 32
_PURPOSE = b"sunzi memoised report, version 1\0"
_LENGTH = struct.Struct("<I")
_OUTSIDE = _LENGTH.pack(0xFFFFFFFF)


class MemoisingClient:
    """Reports one attribute of one device under one plan; equal values give equal bytes, for as long as the key lives.

    The key has 32 secret bytes, drawn once a device (``secrets.token_bytes(32)``) and never sent. ``attribute`` names
    what is measured, the same in all collections that ask for it.
    """

    def __init__(
        self,
        plan: Plan,
        key: bytes,
        attribute: str,
        *,
        max_epsilon: int | float | str | Decimal | Fraction | None = None,
        fingerprint: str | bytes | None = None,
    ) -> None:
        if len(key) != KEY_BYTES:
            raise ParameterError(f"a device key has {KEY_BYTES} bytes, got {len(key)}")
        if not attribute:
            raise ParameterError("attribute must name what is measured, got an empty text")
        if plan.domain.has_labels and plan.domain.labels is None:
            # Not a DomainError: that says that a value is outside, and a background report would follow.
            raise ParameterError("this plan's labels are in a separate file; load the plan with labels=PATH")
        # Its own checks of the plan, the largest ε and the fingerprint are the same as those of any client.
        plan.client(max_epsilon=max_epsilon, fingerprint=fingerprint)
        self.plan, self.attribute = plan, attribute
        self._key = key

    def report(self, value: object) -> bytes:
        """The bytes of the one report of this value."""
        return self.report_index(self.plan.domain.index(value))

    def report_index(self, index: int | None) -> bytes:
        """The same for a value's place in the domain; for None the one background report of all values outside it."""
        client = Client(self.plan, source=DerivedSource(self.derive(index)))
        return client.report_background() if index is None else client.report_index(index)

    def derive(self, index: int | None) -> bytes:
        """The key of one report's randomness: HMAC(device key, purpose, fingerprint, attribute, value).

        Lengths stand before texts, so that no two different sets of terms read the same. A value outside the domain
        has the length 2^32 − 1 and no text, whatever it is.
        """
        domain = self.plan.domain
        value = _OUTSIDE if index is None else _text(domain.label(index) if domain.has_labels else str(index))
        message = _PURPOSE + self.plan.contract.fingerprint + _text(self.attribute) + value
        return hmac.digest(self._key, message, "sha256")

    def __repr__(self) -> str:
        """Terms, never the key."""
        return f"MemoisingClient({self.plan.protocol.name}, epsilon {self.plan.epsilon}, {self.attribute!r})"


def _text(text: str) -> bytes:
    encoded = text.encode()
    return _LENGTH.pack(len(encoded)) + encoded
