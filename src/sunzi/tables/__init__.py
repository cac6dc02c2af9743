"""Tables of reports: tallies of Parquet files and of Spark data frames, and data frames of values made private."""

from sunzi._lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
