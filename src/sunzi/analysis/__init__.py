"""Attacks and checks: reconstruction attacks, audits of a client, poisoning, and its detection."""

from sunzi._lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
