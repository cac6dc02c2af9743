"""Worker processes never outlive their parent.

All processes of a script inherit its standard output, so the end of that pipe shows that all of them have ended.
"""

import os
import signal
import subprocess
import sys
import textwrap
import time
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from pathlib import Path

import pytest

from sunzi.processes import pool_of_processes

SECONDS = 120
"""Workers should end at once, but test machines are busy."""

LONG = 3600

BUSY = f"""
    import os, signal, sys, time
    from pathlib import Path
    from sunzi.processes import pool_of_processes

    def work(place):
        Path(place).touch()
        time.sleep({LONG} if place.endswith("busy") else 0)

    if __name__ == "__main__":
        folder = Path(sys.argv[1])
        places = [str(folder / name) for name in ("busy", "idle")]
        with pool_of_processes(2) as pool:
            futures = [pool.submit(work, place) for place in places]
            while not all(map(os.path.exists, places)):
                time.sleep(0.01)
            print("busy", flush=True)
"""


def start(tmp_path, ending):
    """A script with one busy and one idle worker, and its next action."""
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(BUSY) + textwrap.indent(ending, " " * 8) + "\n")
    (tmp_path / "places").mkdir()
    process = subprocess.Popen(
        [sys.executable, str(script), str(tmp_path / "places")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout.readline() == "busy\n"
    return process


@pytest.fixture
def started(tmp_path):
    processes = []

    def run(ending):
        processes.append(start(tmp_path, ending))
        return processes[-1]

    yield run
    for process in processes:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # in their own session, so that only they are affected
        process.communicate()


def test_workers_end_when_the_parent_is_killed(started):
    process = started(f"time.sleep({LONG})")
    process.kill()
    process.communicate(timeout=SECONDS)
    assert process.returncode == -signal.SIGKILL


def test_workers_end_at_once_if_the_block_fails(started):
    process = started("raise ValueError('enough')")
    _, errors = process.communicate(timeout=SECONDS)
    assert process.returncode == 1
    assert errors.rstrip().endswith("ValueError: enough")
    assert errors.count("Traceback") == 1


def test_workers_end_at_once_if_the_program_exits(started):
    process = started("sys.exit(7)")
    _, errors = process.communicate(timeout=SECONDS)
    assert (process.returncode, errors) == (7, "")


def test_an_interrupt_from_the_keyboard_is_reported_once(started):
    """Ctrl+C reaches every process of the terminal; only the parent reports it."""
    # Short sleeps: a signal in the moment before a sleep begins is handled after it.
    process = started("while True: time.sleep(0.1)")
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=SECONDS)
    assert process.returncode != 0
    assert errors.startswith("Traceback")
    assert errors.count("Traceback") == 1
    assert errors.rstrip().endswith("KeyboardInterrupt")


def test_results_come_back():
    with pool_of_processes(2) as pool:
        assert list(pool.map(abs, [-1, 2, -3])) == [1, 2, 3]


def test_a_worker_that_dies_is_an_error():
    with pytest.raises(BrokenProcessPool), pool_of_processes(1) as pool:
        pool.submit(os._exit, 3).result(timeout=SECONDS)


def test_a_signal_in_the_midst_of_submitting_waits(monkeypatch):
    """An exception raised during a submission could leave a lock held that the pool's threads wait for forever."""
    done = []

    def end(*_):
        raise SystemExit(143)

    before = signal.signal(signal.SIGTERM, end)
    try:
        with pool_of_processes(1) as pool:
            put = pool._work_ids.put

            def disturbed(*arguments):
                signal.raise_signal(signal.SIGTERM)
                done.append(put(*arguments))

            monkeypatch.setattr(pool._work_ids, "put", disturbed)
            with pytest.raises(SystemExit):
                pool.submit(abs, -1)
        assert signal.getsignal(signal.SIGTERM) is end
    finally:
        signal.signal(signal.SIGTERM, before)
    assert len(done) == 1


def workers_of(process):
    """The children of a process, as listed by the system."""
    lists = Path(f"/proc/{process.pid}/task").glob("*/children")
    return [child for one in lists for child in one.read_text().split()]


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs the process list of Linux")
def test_a_reproduction_ends_on_sigterm(tmp_path):
    command = ["reproduce", "mse", "--full", "--jobs", "2", "--output", str(tmp_path)]
    process = subprocess.Popen(
        [sys.executable, "-m", "sunzi", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        end = time.monotonic() + 60
        while len(workers_of(process)) < 3:  # two workers, and Python's helper that started them
            assert process.poll() is None
            assert time.monotonic() < end
            time.sleep(0.02)
        process.terminate()
        process.communicate(
            timeout=SECONDS
        )  # the ends of both pipes; a worker killed during its start may print an error
        assert process.returncode == 143
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
