"""The collector: stores, epochs and the HTTP service that counts every report exactly once."""

from sunzi.client._lazy import attach

__getattr__, __dir__ = attach(__name__, __file__)
