"""The Spark session of ``sunzi tally``: on the cluster of ``spark-submit``, of a master, or on this machine."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from sunzi.client.errors import ParameterError
from sunzi.tables.spark import need_spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_LOCAL = "file:"
_ERROR = re.compile(r"[\w.]+(Error|Exception): ")


def is_submitted() -> bool:
    """Whether ``spark-submit`` started this process."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


@contextmanager
def start_session(master: str | None, *, show_progress: bool) -> Iterator[SparkSession]:
    """A session that is stopped at the end of the block."""
    sql = need_spark()
    if not is_submitted() and (master is None or master.startswith("local")):
        # Workers on this machine use this Python, which has Sunzi, and not the first python3 of the search path.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = sql.SparkSession.builder.appName("sunzi tally")
    builder = builder.config("spark.ui.showConsoleProgress", str(show_progress).lower())
    session = _create(builder if master is None else builder.master(master))
    session.sparkContext.setLogLevel("ERROR")
    try:
        yield session
    finally:
        session.stop()


def _create(builder: SparkSession.Builder) -> SparkSession:
    from pyspark.errors import PySparkRuntimeError

    try:
        return builder.getOrCreate()
    except PySparkRuntimeError as error:
        if error.getCondition() != "JAVA_GATEWAY_EXITED":
            raise
        raise ParameterError(
            "Spark did not start. It needs Java 17 or later, on the search path or in JAVA_HOME, and a --master that "
            "it knows: local[*], spark://HOST:PORT, yarn or k8s://…; its own message is printed above"
        ) from None


def read_parquet(session: SparkSession, paths: list[str]) -> DataFrame:
    """The table in these files and folders of any file system; refused if one is named twice, in any spelling."""
    found = [place for path in paths for place in _places(session, path)]
    for number, place in enumerate(found):
        for other in found[:number]:
            if place == other or place.startswith(other + "/") or other.startswith(place + "/"):
                raise ParameterError(f"{place} would be counted twice, since {other} is named, too; leave one out")
    return session.read.parquet(*paths)


def _places(session: SparkSession, path: str) -> list[str]:
    """The places that a path or pattern names, in the canonical spelling of its file system."""
    virtual_machine: Any = session._jvm
    named = virtual_machine.org.apache.hadoop.fs.Path(path)
    system = named.getFileSystem(session._jsc.hadoopConfiguration())
    # If nothing is found, Spark's own message is better.
    places = [status.getPath().toString() for status in system.globStatus(named) or []]
    return [_without_links(place) for place in places]


def _without_links(place: str) -> str:
    """A local path with its symbolic links resolved."""
    return f"file:{os.path.realpath(place.removeprefix(_LOCAL))}" if place.startswith(_LOCAL) else place


@contextmanager
def spark_errors() -> Iterator[None]:
    """Turn Spark's errors, which fill a screen, into a ParameterError of one line."""
    need_spark()
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise ParameterError(f"Spark could not count: {_one_line(str(error))}") from None


def _one_line(text: str) -> str:
    """The last line of a Python traceback, which says what went wrong in a task, or else the first line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if _ERROR.match(line)]
    return (errors or lines or ["no reason given"])[-1 if errors else 0]
