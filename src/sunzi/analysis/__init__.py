"""Attacks and checks: reconstruction attacks, audits of a client, poisoning, and its detection."""

from sunzi.client._lazy import attach

__getattr__, __dir__ = attach(__name__, __file__)
