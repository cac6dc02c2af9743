"""Reports in Apache Spark: one tally of a data frame, one a group, and reports written once. The extra ``spark``.

>>> from sunzi.tables.spark import tally
>>> counts = tally(spark.read.parquet("reports"), plan)        # doctest: +SKIP
"""

from sunzi.tables.sifting import Refused, Sifted
from sunzi.tables.spark_privatizing import privatize
from sunzi.tables.spark_tallying import sift_by, tally, tally_by
from sunzi.tables.terms import BadReportsWarning

__all__ = ["BadReportsWarning", "Refused", "Sifted", "privatize", "sift_by", "tally", "tally_by"]
