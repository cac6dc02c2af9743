"""Choose a protocol, its ε, its number of users and its moduli before a collection begins, by exact formulas."""

from sunzi.client._lazy import attach

__getattr__, __dir__ = attach(__name__, __file__)
