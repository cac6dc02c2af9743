"""A job for ``spark-submit`` that tallies reports in Parquet. It takes the arguments of ``sunzi tally``.

    spark-submit --master yarn tally_job.py plan.json hdfs:///reports --id-column id -o counts.tally

The plan and the tally are files on the driver's machine; the reports may be on any storage that Spark reads. Install
``sunzi[spark]`` for the Python of driver and executors (PYSPARK_PYTHON).
"""

import runpy
import sys

if __name__ == "__main__":
    sys.argv[1:1] = ["tally", "--engine", "spark"]
    runpy.run_module("sunzi", run_name="__main__")
