"""The Spark session of a command: that of ``spark-submit``, of a master, or of this machine."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sunzi.errors import ParameterError
from sunzi.spark.tallying import need_spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def is_submitted() -> bool:
    """Whether ``spark-submit`` started this process."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


@contextmanager
def started(master: str | None, *, show_progress: bool) -> Iterator[SparkSession]:
    """A session that ends with the block."""
    sql = need_spark()
    if not is_submitted() and (master is None or master.startswith("local")):
        # Workers on this machine are this Python, which has Sunzi, and not the first python3 of the search path.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = sql.SparkSession.builder.appName("sunzi tally")
    builder = builder.config("spark.ui.showConsoleProgress", str(show_progress).lower())
    session = (builder if master is None else builder.master(master)).getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    try:
        yield session
    finally:
        session.stop()


def read_parquet(session: SparkSession, paths: list[str]) -> DataFrame:
    """The table in these files and folders, wherever Spark finds them."""
    from pyspark.errors import AnalysisException

    try:
        return session.read.parquet(*paths)
    except AnalysisException as error:
        reason = next(iter(str(error).splitlines()), "unknown")
        raise ParameterError(f"Spark cannot read the table: {reason}") from None
