"""A real cluster on loopback, one for every process of a test run."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

# The helpers beside this file and one above.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from cluster import Cluster, NoJava, driver, running_cluster
from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    try:
        with running_cluster(tmp_path_factory.mktemp("cluster")) as started:
            yield started
    except NoJava as reason:
        pytest.skip(str(reason))


@pytest.fixture(scope="session")
def spark(cluster: Cluster) -> Iterator[SparkSession]:
    with driver(cluster) as session:
        yield session
