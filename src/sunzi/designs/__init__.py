"""Families of blocks over v points, and the block response that randomises with one."""

from sunzi._lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
