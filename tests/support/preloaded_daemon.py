"""Spark's daemon of Python workers, with a client that has reported before any worker is forked."""

import os

# Import the modules that tasks need once, before the fork.
import pandas  # noqa: F401
import pyarrow  # noqa: F401

import sunzi
import sunzi.tables.spark

client = sunzi.make_plan("oue", 200, 1).client()
client.report(3)
filled_by = os.getpid()

if __name__ == "__main__":
    import preloaded_daemon  # noqa: F401  # import it under the name that workers use
    from pyspark import daemon

    daemon.manager()
