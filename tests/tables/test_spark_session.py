"""Jobs run by ``spark-submit``, the command without it, and the examples of docs/cluster.md."""

import contextlib
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.spark_cluster import HOME, SETTINGS
from report_tables import reports_of, table_of, write

import sunzi
from sunzi.cli.main import main
from sunzi.tables import spark_session

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "cluster.md"
JOB = ROOT / "examples" / "spark" / "tally_job.py"


@pytest.fixture(scope="module")
def plan():
    return sunzi.make_plan("mss-compact", 60, 1)


@pytest.fixture
def in_session(spark, monkeypatch):
    """Commands in this process use the existing session and leave it running."""
    monkeypatch.setattr(spark_session, "start_session", lambda master, show_progress: contextlib.nullcontext(spark))


def submit(cluster, *words):
    """Exit status and output of a submitted job: Spark writes the driver's errors and output to one stream."""
    settings = SETTINGS | {"spark.cores.max": "1"}  # one executor is enough
    options = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    command = [HOME / "bin" / "spark-submit", "--master", cluster.url, *options, *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, env=cluster.environment(), timeout=300, check=False)
    return done.returncode, done.stdout + done.stderr


def test_the_job_file(cluster, tmp_path, plan):
    reports = reports_of(plan, 900)
    folder = write(table_of([*reports, None]), tmp_path / "reports")
    plan.save(tmp_path / "plan.json")
    code, printed = submit(cluster, JOB, tmp_path / "plan.json", folder, "--id-column", "id", "-o", tmp_path / "t")
    assert code == 0, printed
    assert sunzi.load_tally(tmp_path / "t") == plan.tally(reports)
    assert "sunzi: warning: 1 cell holds no report of this plan, left out of the tally: 1 missing" in printed


def test_a_job_that_fails_writes_nothing(in_session, monkeypatch, tmp_path, plan, capsys):
    folder = write(table_of([*reports_of(plan, 90), None]), tmp_path / "reports")
    plan.save(tmp_path / "plan.json")
    words = (JOB, tmp_path / "plan.json", folder, "--bad-reports", "fail", "-o", tmp_path / "t")
    monkeypatch.setattr(sys, "argv", [*map(str, words)])
    with pytest.raises(SystemExit) as ending:
        runpy.run_path(str(JOB), run_name="__main__")
    assert ending.value.code == 2
    assert "sunzi: error: 1 cell holds no report of this plan: 1 missing" in capsys.readouterr().err
    assert not (tmp_path / "t").exists()


def test_files_that_spark_does_not_find(in_session, tmp_path, plan, capsys):
    plan.save(tmp_path / "plan.json")
    words = [str(tmp_path / "plan.json"), str(tmp_path / "nowhere"), "--engine", "spark", "-o", str(tmp_path / "none")]
    assert main(["tally", *words]) == 2
    assert "sunzi: error: Spark could not count: [PATH_NOT_FOUND]" in capsys.readouterr().err


def test_the_command_by_itself(java, tmp_path, plan):
    """On this machine, without a cluster and without spark-submit; groups become a folder of tallies."""
    reports = reports_of(plan, 300)
    folder = write(table_of(reports), tmp_path / "reports")
    plan.save(tmp_path / "plan.json")
    words = ["plan.json", "--engine", "spark", "--master", "local[1]"]
    done = run(tmp_path, *words, folder, "--by", "country", "-o", "out")
    assert done.returncode == 0, done.stderr
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        *("country=DE.tally", "country=FR.tally", "country.tally", "groups.csv")
    }
    tallies = [sunzi.load_tally(path) for path in (tmp_path / "out").glob("*.tally")]
    assert sum(tallies) == plan.tally(reports)
    done = run(tmp_path, "plan.json", folder, "--engine", "spark", "--master", "nowhere", "-o", "none")
    assert done.returncode == 2
    assert "sunzi: error: Spark did not start. It needs Java 17" in done.stderr
    assert "Traceback" not in done.stderr


def run(folder, *words):
    command = [sys.executable, "-W", "ignore", "-m", "sunzi", "tally", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_a_submitted_job_needs_a_file_for_its_tally(monkeypatch, tmp_path, plan, capsys):
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    plan.save(tmp_path / "plan.json")
    assert main(["tally", str(tmp_path / "plan.json"), "reports", "--engine", "spark"]) == 2
    assert "give -o FILE" in capsys.readouterr().err


def test_examples_of_the_page(java, tmp_path):
    """All of docs/cluster.md from top to bottom in one process, including the Dask example."""
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), flags=re.MULTILINE | re.DOTALL)
    assert len(blocks) == 5
    assert "import dask" in blocks[-1]
    environment = os.environ | {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(blocks)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "3 cells hold no report of this plan, left out of the tally: 1 missing, 1 out of range" in done.stdout
