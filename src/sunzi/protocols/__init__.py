"""Frequency oracles: how a client randomises a value, and how a server estimates from the reports."""

from sunzi.client._lazy import attach

__getattr__, __dir__ = attach(__name__, __file__)
