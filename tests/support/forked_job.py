"""A job whose tasks use a client that they inherited from their daemon, its pool of random words filled."""

from pyspark.sql import SparkSession


def reports(batches):
    import os

    import preloaded_daemon
    import pyarrow as pa

    for batch in batches:
        made = [preloaded_daemon.client.report(3) for _ in range(batch.num_rows)]
        process = os.getpid() if preloaded_daemon.filled_by != os.getpid() else None
        yield pa.RecordBatch.from_pydict({"report": pa.array(made, pa.binary()), "heir": [process] * len(made)})


if __name__ == "__main__":
    session = SparkSession.builder.getOrCreate()
    rows = session.range(64, numPartitions=16).mapInArrow(reports, "report binary, heir bigint").collect()
    heirs = {row.heir for row in rows}
    assert None not in heirs, "some task did not inherit its client"
    print(f"{len(rows)} reports by {len(heirs)} heirs, {len({bytes(row.report) for row in rows})} different")
    session.stop()
