"""A real cluster on loopback, one for every process of a test run."""

import shutil
from collections.abc import Iterator

import pytest
from benchmarks.spark_cluster import Cluster, driver, running_cluster
from packages import install
from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def java() -> None:
    """Java 17 or later; installed first, if it is missing and this machine can install it."""
    if shutil.which("java") is None:
        reason = install("openjdk-17-jre-headless")
        if reason is not None:
            pytest.skip(f"Spark needs Java 17: {reason}")


@pytest.fixture(scope="session")
def cluster(java: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with running_cluster(tmp_path_factory.mktemp("cluster")) as started:
        yield started


@pytest.fixture(scope="session")
def spark(cluster: Cluster) -> Iterator[SparkSession]:
    with driver(cluster) as session:
        yield session
