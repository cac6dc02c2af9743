"""A standalone Spark cluster on loopback: a master and workers, each a process group of its own that can be killed."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession

from packages import install

_START_SECONDS = 120.0
HOME = Path(pyspark.__file__).parent


class NoJava(Exception):
    """Spark runs on Java, which is not installed, and cannot be."""


def need_java() -> None:
    """Java 17 or later; installed first, if it is missing and this machine can install it."""
    if shutil.which("java") is None:
        reason = install("openjdk-17-jre-headless")
        if reason is not None:
            raise NoJava(f"Spark needs Java 17: {reason}")


class Cluster:
    """One master and some workers of one core each."""

    def __init__(self, directory: Path, workers: int = 2) -> None:
        need_java()
        self.directory = directory
        self._numbers = iter(range(1000))
        self._master = self._start("master.Master", "--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
        self.url = self._wait(self._master, r"Starting Spark master at (spark://\S+)")
        self.workers: list[subprocess.Popen[bytes]] = []
        for _ in range(workers):
            self.add_worker()

    def add_worker(self) -> None:
        """Another worker, known to the master when this returns."""
        folder = str(self.directory / f"work-{next(self._numbers)}")
        options = ("--host", "127.0.0.1", "--webui-port", "0", "--cores", "1", "--memory", "1g", "--work-dir", folder)
        worker = self._start("worker.Worker", *options, self.url)
        self._wait(worker, "Successfully registered with (master)")
        self.workers.append(worker)

    def kill_worker(self) -> None:
        """Kill a worker with everything that runs on it."""
        _kill(self.workers.pop())

    def stop(self) -> None:
        """Kill all that is left."""
        for process in (*self.workers, self._master):
            _kill(process)

    def environment(self) -> dict[str, str]:
        """What a process of this cluster, or a driver, finds around it."""
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

    def _start(self, kind: str, *options: str) -> subprocess.Popen[bytes]:
        log = self.directory / f"log-{next(self._numbers)}"
        with log.open("wb") as stream:
            process = subprocess.Popen(
                [HOME / "bin" / "spark-class", f"org.apache.spark.deploy.{kind}", *options],
                stdout=stream,
                stderr=stream,
                stdin=subprocess.DEVNULL,
                env=self.environment(),
                start_new_session=True,  # executors are children of their worker, and die with its group
            )
        process.log = log  # type: ignore[attr-defined]
        return process

    @staticmethod
    def _wait(process: subprocess.Popen[bytes], pattern: str) -> str:
        end = time.monotonic() + _START_SECONDS
        while time.monotonic() < end and process.poll() is None:
            text = process.log.read_text(errors="replace")  # type: ignore[attr-defined]
            found = re.search(pattern, text)
            if found:
                return found.group(1)
            time.sleep(0.1)
        raise RuntimeError(process.log.read_text(errors="replace")[-2000:])  # type: ignore[attr-defined]


def _kill(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@contextlib.contextmanager
def running_cluster(directory: Path) -> Iterator[Cluster]:
    """A cluster that is gone at the end."""
    cluster = Cluster(directory)
    try:
        yield cluster
    finally:
        cluster.stop()


@contextlib.contextmanager
def driver(cluster: Cluster) -> Iterator[SparkSession]:
    """A session of this process on the cluster."""
    before = dict(os.environ)
    os.environ.update(cluster.environment())
    builder = SparkSession.builder.master(cluster.url).appName("sunzi tests")
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.executor.memory": "800m",
        "spark.driver.memory": "800m",
        "spark.sql.shuffle.partitions": "4",
        "spark.sql.warehouse.dir": str(cluster.directory / "warehouse"),
        "spark.log.level": "ERROR",
        # A worker that a test kills is given up soon.
        "spark.shuffle.io.maxRetries": "1",
        "spark.shuffle.io.retryWait": "1s",
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    try:
        yield session
    finally:
        session.stop()
        os.environ.clear()
        os.environ.update(before)
