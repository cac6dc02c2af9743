"""The Spark session of a command: that of ``spark-submit``, of a master, or of this machine."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from sunzi.errors import ParameterError
from sunzi.tables.spark_frames import need_spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_LOCAL = "file:"
_ERROR = re.compile(r"[\w.]+(Error|Exception): ")


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
    session = _session(builder if master is None else builder.master(master))
    session.sparkContext.setLogLevel("ERROR")
    try:
        yield session
    finally:
        session.stop()


def _session(builder: SparkSession.Builder) -> SparkSession:
    from pyspark.errors import PySparkRuntimeError

    try:
        return builder.getOrCreate()
    except PySparkRuntimeError as error:
        if error.getCondition() != "JAVA_GATEWAY_EXITED":
            raise
        raise ParameterError(
            "Spark did not start. It needs Java 17 or later, on the search path or in JAVA_HOME, and a --master that "
            "it knows: local[*], spark://HOST:PORT, yarn or k8s://…; what it said itself stands above"
        ) from None


def read_parquet(session: SparkSession, paths: list[str]) -> DataFrame:
    """The table in these files and folders, wherever Spark finds them; none of them twice, however it is spelled."""
    found = [place for path in paths for place in _places(session, path)]
    for number, place in enumerate(found):
        for other in found[:number]:
            if place == other or place.startswith(other + "/") or other.startswith(place + "/"):
                raise ParameterError(f"{place} would be counted twice: {other} is named, too")
    return session.read.parquet(*paths)


def _places(session: SparkSession, path: str) -> list[str]:
    """What a path or a pattern stands for, in the one spelling of its file system."""
    virtual_machine: Any = session._jvm
    named = virtual_machine.org.apache.hadoop.fs.Path(path)
    system = named.getFileSystem(session._jsc.hadoopConfiguration())
    # Where nothing is found, Spark says so better.
    places = [status.getPath().toString() for status in system.globStatus(named) or []]
    return [_without_links(place) for place in places]


def _without_links(place: str) -> str:
    """A folder of this machine under its own name."""
    return f"file:{os.path.realpath(place.removeprefix(_LOCAL))}" if place.startswith(_LOCAL) else place


@contextmanager
def spark_errors() -> Iterator[None]:
    """Spark's complaints, which fill a screen, as one of ours in one line."""
    need_spark()
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise ParameterError(f"Spark could not count: {_told(str(error))}") from None


def _told(text: str) -> str:
    """The last line of a traceback of Python, which says what went wrong in a task, or else the first line of all."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if _ERROR.match(line)]
    return (errors or lines or ["no reason given"])[-1 if errors else 0]
