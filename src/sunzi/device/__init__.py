"""Devices that report repeatedly: memoised noise, a lifetime privacy budget, and an outbox that survives crashes."""

from sunzi._lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
