"""Reports in Apache Spark: one tally of a data frame, one a group, and reports written once. The extra ``spark``.

>>> from sunzi.spark import tally
>>> counts = tally(spark.read.parquet("reports"), plan)        # doctest: +SKIP
"""

from sunzi.columns.sifting import Refused, Sifted
from sunzi.columns.terms import BadReportsWarning
from sunzi.spark.privatizing import privatize
from sunzi.spark.tallying import sift_by, tally, tally_by

__all__ = ["BadReportsWarning", "Refused", "Sifted", "privatize", "sift_by", "tally", "tally_by"]
