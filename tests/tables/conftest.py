"""A real cluster on loopback with one session; all tests that need them run in one process."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from packages import install

if TYPE_CHECKING:
    from benchmarks.spark_cluster import Cluster
    from pyspark.sql import SparkSession

SUPPORT = str(Path(__file__).resolve().parents[1] / "support")
PRELOADED = {
    # Python workers are forked from a daemon that has already imported the modules that tasks need.
    "spark.python.daemon.module": "preloaded_daemon",
    "spark.executorEnv.PYTHONPATH": os.pathsep.join(filter(None, [SUPPORT, os.environ.get("PYTHONPATH")])),
}


@pytest.fixture(scope="session")
def java(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Java 17 or later, installed if it is missing and this machine allows it."""
    if shutil.which("java") is None:
        reason = install("openjdk-17-jre-headless")
        if reason is not None:
            pytest.skip(f"Spark needs Java 17: {reason}")
    with pytest.MonkeyPatch.context() as patch:
        # These virtual machines live for seconds: compile quickly, collect garbage in one thread, verify no classes.
        quick = (
            "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
        )
        # Killed ones leave their files behind.
        files = f"-XX:-UsePerfData -Djava.io.tmpdir={tmp_path_factory.mktemp('java')}"
        patch.setenv("JAVA_TOOL_OPTIONS", f"{quick} {files}")
        yield


@pytest.fixture(scope="session")
def cluster(java: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    from benchmarks.spark_cluster import running_cluster

    with running_cluster(tmp_path_factory.mktemp("cluster")) as started:
        yield started


@pytest.fixture(scope="session")
def spark(cluster: Cluster) -> Iterator[SparkSession]:
    from benchmarks.spark_cluster import driver

    with driver(cluster, PRELOADED) as session:
        yield session
