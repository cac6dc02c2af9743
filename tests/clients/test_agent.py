"""The example of a program that reports its version, with sunzi-client alone, against a collector."""

import os
import pty
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sunzi.collector import RemoteCollector, Settings, serve
from sunzi.collector.remote import TooFewReportsError
from sunzi.plan import load_plan, make_plan

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
AGENT = ROOT / "examples" / "agent" / "agent.py"
PLAN = load_plan(AGENT.with_name("plan.json"))


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A directory in which sunzi-client is installed, and nothing else."""
    directory = tmp_path_factory.mktemp("installed")
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "install", "--no-index", "--no-deps"]
    source = ROOT / "clients" / "python"
    subprocess.run([*pip, "--no-build-isolation", "--target", directory, source], check=True, timeout=120)
    return directory


@pytest.fixture
def collector():
    with serve({"versions": PLAN}, settings=Settings(port=0, minimum_reports=1)) as running:
        yield running


@pytest.fixture
def run(installed, tmp_path):
    """Run the program; answers are typed on a terminal, without one there is none."""

    def start(address, *options, answer=None, **environment):
        inherited = {name: value for name, value in os.environ.items() if name != "DO_NOT_TRACK"}
        master, slave = pty.openpty()
        if answer is not None:
            os.write(master, f"{answer}\n".encode())
        done = subprocess.run(
            [sys.executable, "-S", AGENT, "--report", address, "--folder", tmp_path / "state", *options],
            stdin=subprocess.DEVNULL if answer is None else slave,
            capture_output=True,
            text=True,
            check=False,
            env={**inherited, "PYTHONPATH": str(installed), **environment},
            timeout=60,
        )
        os.close(master)
        os.close(slave)
        assert done.returncode == 0, done.stderr
        assert done.stdout.splitlines()[0].endswith("% of / is used")
        return done

    start.state = tmp_path / "state"
    return start


def reports(collector):
    """How many the newest epoch counted."""
    remote = RemoteCollector(f"{collector.url}/v1/collections/versions", max_epsilon=1)
    try:
        return remote.tally(remote.current().number)[1].reports
    except TooFewReportsError:
        return 0
    finally:
        remote.close()


def make_older(state):
    past = time.time() - 8 * 24 * 3600
    os.utime(state / "sent", (past, past))


def test_a_user_who_agrees_is_asked_once_and_reports_once_a_week(run, collector):
    address = f"{collector.url}/v1/collections/versions"
    first = run(address, answer="y")
    assert "Nothing is sent unless you agree" in first.stdout
    assert f"If it went to {address}/epochs/1, in hexadecimal: " in first.stdout
    assert first.stderr == "sent: 1; 1 of epsilon 10 spent\n"
    assert reports(collector) == 1
    second = run(address, answer="y")
    assert "agree" not in second.stdout
    assert second.stderr == "reported less than a week ago\n"
    make_older(run.state)
    assert run(address).stderr == "sent: 0; 1 of epsilon 10 spent\n"  # the epoch is the same
    collector.close("versions", 1)
    collector.open("versions", PLAN)
    make_older(run.state)
    assert run(address).stderr == "sent: 1; 1 of epsilon 10 spent\n"
    assert reports(collector) == 1


@pytest.mark.parametrize("answer", ["n", "", "yesterday"])
def test_any_other_answer_is_no_and_is_remembered(run, collector, answer):
    address = f"{collector.url}/v1/collections/versions"
    first = run(address, answer=answer)
    assert first.stderr == "reports are off\n"
    assert [path.name for path in run.state.iterdir()] == ["asked"]
    second = run(address, answer="y")
    assert (second.stdout.count("\n"), second.stderr) == (1, "reports are off\n")
    assert reports(collector) == 0


def test_without_a_terminal_nobody_is_asked_and_nothing_is_stored(run):
    assert run("http://127.0.0.1:9").stderr == "reports are off\n"
    assert not run.state.exists()


def test_no_reports_turns_it_off(run, collector):
    address = f"{collector.url}/v1/collections/versions"
    run(address, answer="y")
    assert run(address, "--no-reports").stderr == "reports are off\n"
    make_older(run.state)
    assert run(address, answer="y").stderr == "reports are off\n"
    assert reports(collector) == 1


def test_no_reports_on_the_first_run(run):
    assert run("http://127.0.0.1:9", "--no-reports").stderr == "reports are off\n"
    assert run("http://127.0.0.1:9", answer="y").stderr == "reports are off\n"
    assert not (run.state / "device.db").exists()


def test_do_not_track_wins(run, collector):
    address = f"{collector.url}/v1/collections/versions"
    assert run(address, answer="y", DO_NOT_TRACK="1").stderr == "reports are off: DO_NOT_TRACK is set\n"
    assert not run.state.exists()
    run(address, answer="y")
    make_older(run.state)
    assert run(address, DO_NOT_TRACK="1").stderr == "reports are off: DO_NOT_TRACK is set\n"
    assert reports(collector) == 1


def test_another_question_is_not_answered(run):
    with serve(make_plan("grr", ["1.0", "2.1"], epsilon=1), settings=Settings(port=0)) as other:
        assert "another question" in run(f"{other.url}/v1/collections/default", answer="y").stderr


def test_the_program_works_without_a_collector(run):
    assert run("http://127.0.0.1:9", answer="y").stderr.startswith("could not report: http://127.0.0.1:9")
    assert run("no address", answer="y").stderr.startswith("could not report: a collector's address begins")
