"""Exact arithmetic, codes, sampling and linear algebra for the other packages. Not part of the public API."""
