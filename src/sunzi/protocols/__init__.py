"""Frequency oracles: how a client randomises a value, and how a server estimates from the reports."""

from sunzi._lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
