"""Jobs run by ``spark-submit``, the command without it, and the examples of docs/cluster.md."""

import contextlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.spark_cluster import HOME, SETTINGS
from report_tables import reports_of, table_of, write

import sunzi
from sunzi.cli.main import main
from sunzi.tables import spark_session as adapter

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "cluster.md"
JOB = ROOT / "examples" / "spark" / "tally_job.py"


@pytest.fixture(scope="module")
def plan():
    return sunzi.make_plan("mss-compact", 60, 1)


@pytest.fixture
def in_session(spark, monkeypatch):
    """Commands in this process use the existing session and leave it running."""
    monkeypatch.setattr(adapter, "start_session", lambda master, show_progress: contextlib.nullcontext(spark))


@pytest.fixture
def alone(java, tmp_path):
    """The environment of processes that start Spark by themselves, on this machine and with little to set up."""
    settings = SETTINGS | {"spark.sql.shuffle.partitions": "1", "spark.speculation": "false"}
    (tmp_path / "spark-defaults.conf").write_text("".join(f"{name} {value}\n" for name, value in settings.items()))
    return os.environ | {
        "SPARK_CONF_DIR": str(tmp_path),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_DIRS": str(tmp_path),
    }


def run(folder, environment, *words):
    return subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False)


THREE_JOBS = """
import os, runpy, sys

def run(path, *words):
    sys.argv = [path, "plan.json", "reports", *words]
    runpy.run_path(path, run_name="__main__")

def succeed(path, *words):
    try:
        run(path, *words)
    except SystemExit as ending:
        assert ending.code == 0, ending.code

job = sys.argv[1]
succeed(job, "--id-column", "id", "-o", "good")
port = os.environ.pop("PYSPARK_GATEWAY_PORT")
succeed(job, "--master", "local[1]", "--by", "country", "-o", "groups")
os.environ["PYSPARK_GATEWAY_PORT"] = port
run(job, "--bad-reports", "fail", "-o", "bad")
"""


def test_submitted_jobs(alone, tmp_path, plan):
    """One driver runs three jobs, to start Spark once: the first succeeds; the second is the command without
    spark-submit; and the third one's failure is the exit status of spark-submit.
    """
    reports = reports_of(plan, 900)
    write(table_of([*reports, None]), tmp_path / "reports")
    plan.save(tmp_path / "plan.json")
    (tmp_path / "three_jobs.py").write_text(THREE_JOBS)
    environment = alone | {"PYSPARK_PYTHON": sys.executable}
    submit = HOME / "bin" / "spark-submit"
    done = run(tmp_path, environment, submit, "--master", "local[1]", "three_jobs.py", JOB)
    printed = done.stdout + done.stderr  # Spark writes the driver's errors and output to one stream
    assert done.returncode == 2, printed
    assert sunzi.load_tally(tmp_path / "good") == plan.tally(reports)
    assert "sunzi: warning: 1 cell holds no report of this plan, left out of the tally: 1 missing" in printed
    check_groups(tmp_path / "groups", plan.tally(reports))
    assert "sunzi: error: 1 cell holds no report of this plan: 1 missing" in printed
    assert not (tmp_path / "bad").exists()


def check_groups(folder, total):
    """Groups become a folder of tallies."""
    assert {path.name for path in folder.iterdir()} == {
        *("country=DE.tally", "country=FR.tally", "country.tally", "groups.csv")
    }
    assert sum(sunzi.load_tally(path) for path in folder.glob("*.tally")) == total


def test_files_that_spark_does_not_find(in_session, tmp_path, plan, capsys):
    plan.save(tmp_path / "plan.json")
    words = [str(tmp_path / "plan.json"), str(tmp_path / "nowhere"), "--engine", "spark", "-o", str(tmp_path / "none")]
    assert main(["tally", *words]) == 2
    assert "sunzi: error: Spark could not count: [PATH_NOT_FOUND]" in capsys.readouterr().err


@pytest.mark.long  # the second job above, in a process that starts Java
def test_the_command_by_itself(alone, tmp_path, plan):
    """On this machine, without a cluster and without spark-submit."""
    reports = reports_of(plan, 300)
    folder = write(table_of(reports), tmp_path / "reports")
    plan.save(tmp_path / "plan.json")
    tally = [sys.executable, "-W", "ignore", "-m", "sunzi", "tally", "plan.json", folder, "--engine", "spark"]
    done = run(tmp_path, alone, *tally, "--master", "local[1]", "--by", "country", "-o", "out")
    assert done.returncode == 0, done.stderr
    check_groups(tmp_path / "out", plan.tally(reports))


@pytest.mark.parametrize(
    ("master", "java_home"), [("local[1]", "/nowhere"), pytest.param("nowhere", "", marks=pytest.mark.long)]
)
def test_spark_that_does_not_start(alone, tmp_path, plan, master, java_home):
    plan.save(tmp_path / "plan.json")
    command = [sys.executable, "-W", "ignore", "-m", "sunzi", "tally", "plan.json", "reports", "--engine", "spark"]
    done = run(tmp_path, alone | {"JAVA_HOME": java_home}, *command, "--master", master, "-o", "none")
    assert done.returncode == 2
    assert "sunzi: error: Spark did not start. It needs Java 17" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_submitted_job_needs_a_file_for_its_tally(monkeypatch, tmp_path, plan, capsys):
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    plan.save(tmp_path / "plan.json")
    assert main(["tally", str(tmp_path / "plan.json"), "reports", "--engine", "spark"]) == 2
    assert "give -o FILE" in capsys.readouterr().err


def test_examples_of_the_page(spark, tmp_path, monkeypatch, capsys):
    """All of docs/cluster.md from top to bottom, including the Dask example; the session is the one of all tests."""
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), flags=re.MULTILINE | re.DOTALL)
    assert len(blocks) == 5
    assert "import dask" in blocks[-1]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(type(spark), "stop", lambda session: None)
    hadoop = spark._jvm.org.apache.hadoop.fs
    files = hadoop.FileSystem.get(spark._jsc.hadoopConfiguration())
    before = files.getWorkingDirectory()
    files.setWorkingDirectory(hadoop.Path(str(tmp_path)))  # relative paths of the page, in Java too
    try:
        exec(compile("\n".join(blocks), str(PAGE), "exec"), {"__name__": "__main__"})
    finally:
        files.setWorkingDirectory(before)
    printed = capsys.readouterr().out
    assert "3 cells hold no report of this plan, left out of the tally: 1 missing, 1 out of range" in printed
