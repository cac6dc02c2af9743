"""A standalone Spark cluster on loopback: a master and workers, each in a process group that can be killed."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession

from benchmarks.children import UnavailableError

_START_SECONDS = 120.0
HOME = Path(pyspark.__file__).parent
SETTINGS = {
    "spark.cores.max": "2",
    "spark.executor.cores": "1",
    "spark.executor.memory": "800m",
    "spark.driver.memory": "800m",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "4",
    "spark.log.level": "ERROR",
    # Speculation: a slow task is run a second time on another worker.
    "spark.speculation": "true",
    # Give up a killed worker quickly.
    "spark.shuffle.io.maxRetries": "1",
    "spark.shuffle.io.retryWait": "1s",
}
"""Settings of every session on the cluster: small, and on this machine only."""


class Cluster:
    """One master and several workers, each with one core for the tests' session and one for a submitted job."""

    def __init__(self, directory: Path, workers: int = 2) -> None:
        if shutil.which("java") is None:
            raise UnavailableError("Spark needs Java 17 or later, and there is no java on the search path")
        self.directory = directory
        self._numbers = itertools.count()
        self._master = self._start("master.Master", "--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
        self.url = self._master.heard(r"Starting Spark master at (spark://\S+)")
        self.workers: list[_Daemon] = []
        for _ in range(workers):
            self.add_worker()

    def add_worker(self) -> None:
        """Start another worker and wait until the master knows it.

        Each has its own address, because Spark does not speculate on a host that already runs the task.
        """
        number = next(self._numbers)
        host, folder = f"127.0.0.{number + 1}", str(self.directory / f"work-{number}")
        options = ("--host", host, "--webui-port", "0", "--cores", "2", "--memory", "2g", "--work-dir", folder)
        worker = self._start("worker.Worker", *options, self.url, host=host)
        worker.heard("Successfully registered with (master)")
        self.workers.append(worker)

    def kill_worker(self) -> None:
        """Kill a worker and everything that runs on it."""
        self.workers.pop().kill()

    def stop(self) -> None:
        """Kill all remaining processes."""
        for daemon in (*self.workers, self._master):
            daemon.kill()

    def environment(self) -> dict[str, str]:
        """Environment variables of the cluster's processes and of drivers."""
        return os.environ | {
            "SPARK_HOME": str(HOME),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_LOCAL_DIRS": str(self.directory),
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_NO_DAEMONIZE": "1",
            "PYSPARK_PYTHON": sys.executable,
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
        }

    def _start(self, kind: str, *options: str, host: str = "127.0.0.1") -> _Daemon:
        log = self.directory / f"log-{next(self._numbers)}"
        with log.open("wb") as stream:
            process = subprocess.Popen(
                [HOME / "bin" / "spark-class", f"org.apache.spark.deploy.{kind}", *options],
                stdout=stream,
                stderr=stream,
                stdin=subprocess.DEVNULL,
                env=self.environment() | {"SPARK_LOCAL_IP": host},
                start_new_session=True,  # executors are children of their worker and die with its group
            )
        return _Daemon(process, log)


@dataclass(frozen=True)
class _Daemon:
    """A process of the cluster and its output."""

    process: subprocess.Popen[bytes]
    log: Path

    def heard(self, pattern: str) -> str:
        """Wait until the output matches the pattern, and return its first group."""
        end = time.monotonic() + _START_SECONDS
        while time.monotonic() < end and self.process.poll() is None:
            found = re.search(pattern, self.log.read_text(errors="replace"))
            if found:
                return found.group(1)
            time.sleep(0.1)
        raise RuntimeError(self.log.read_text(errors="replace")[-2000:])

    def kill(self) -> None:
        """Kill the process and everything that it started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


@contextlib.contextmanager
def running_cluster(directory: Path) -> Iterator[Cluster]:
    """A cluster that is removed at the end."""
    cluster = Cluster(directory)
    try:
        yield cluster
    finally:
        cluster.stop()


@contextlib.contextmanager
def driver(cluster: Cluster, settings: Mapping[str, str] | None = None) -> Iterator[SparkSession]:
    """A session of this process on the cluster, with additional settings."""
    before = dict(os.environ)
    os.environ.update(cluster.environment())
    builder = SparkSession.builder.master(cluster.url).appName("sunzi tests")
    for name, value in (SETTINGS | dict(settings or {})).items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    try:
        yield session
    finally:
        session.stop()
        os.environ.clear()
        os.environ.update(before)
