"""Families of blocks, and the block response that reports one of them."""
