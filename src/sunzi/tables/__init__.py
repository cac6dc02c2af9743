"""Tables of reports: tallies of Parquet files and of Spark data frames, and data frames of values made private."""

from sunzi.client._lazy import attach

__getattr__, __dir__ = attach(__name__, __file__)
