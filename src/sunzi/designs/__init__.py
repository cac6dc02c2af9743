"""Families of blocks over v points, and the block response that randomises with one."""

from sunzi.client._lazy import attach

__getattr__, __dir__ = attach(__name__, __file__)
