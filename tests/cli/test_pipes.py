"""Real processes and pipes: streams end to end, failures that the next command notices, and requests to stop."""

import os
import signal
import subprocess
import sys
import time

import pytest

import sunzi

pytestmark = pytest.mark.slow

SUNZI = [sys.executable, "-m", "sunzi"]


def test_from_csv_to_csv_through_pipes(collection):
    def start(*words, source):
        return subprocess.Popen([*SUNZI, *words], stdin=source, stdout=subprocess.PIPE, cwd=collection.directory)

    with open(collection.path("data.csv"), "rb") as data:
        first = start("privatize", "plan.json", "-", "--column", "browser", source=data)
    second = start("tally", "plan.json", "-", source=first.stdout)
    third = start("estimate", "plan.json", "-", source=second.stdout)
    first.stdout.close()
    second.stdout.close()
    printed, _ = third.communicate(timeout=60)
    assert [process.wait() for process in (first, second, third)] == [0, 0, 0]
    lines = printed.decode().splitlines()
    assert lines[0].startswith("label,frequency,low,high")
    assert len(lines) == 6


def test_a_stream_that_fails_half_way_is_not_taken_for_the_whole(collection, monkeypatch, capfdbinary):
    """The first rows are valid and are written as complete batches; the failure truncates the last one."""
    from sunzi.cli import privatize

    monkeypatch.setattr(privatize, "reports_at_once", lambda plan: 1_000)
    monkeypatch.setattr("sunzi.tables.column_rows.ROWS_AT_ONCE", 1_000)
    strict = sunzi.make_plan("grr", ["Chrome", "Firefox", "Safari"], 1)
    strict.save(collection.path("strict.json"))
    assert collection.run("privatize", "strict.json", "data.csv", "--column", "browser") == 2
    sent, complaint = capfdbinary.readouterr()
    assert b"row 3801" in complaint
    assert len(sent) > 500, "complete batches are written first"
    with pytest.raises(sunzi.ReportError, match="truncated"):
        strict.tally(sent)
    assert strict.tally(sent[:-4]).reports == 3_000


@pytest.mark.skipif(os.name != "posix", reason="Windows ends processes without a signal")
def test_a_request_to_end_leaves_no_file_behind(collection):
    read_end, write_end = os.pipe()
    words = ["privatize", "plan.json", "-", "--column", "browser", "-o", "out.bin"]
    process = subprocess.Popen([*SUNZI, *words], stdin=read_end, cwd=collection.directory, stderr=subprocess.PIPE)
    os.close(read_end)
    os.write(write_end, b"id,browser\n1,Chrome\n")
    deadline = time.monotonic() + 60
    while not any(name.startswith(".out.bin") for name in collection.names()):
        assert time.monotonic() < deadline, "no output was written"
        time.sleep(0.02)
    process.send_signal(signal.SIGTERM)
    os.close(write_end)
    process.communicate(timeout=60)
    assert process.returncode == 143
    assert collection.names() == ["data.csv", "plan.json"]


@pytest.mark.skipif(os.name != "posix", reason="peak memory is read with a POSIX call")
def test_memory_does_not_grow_with_the_table(collection):
    """Once pyarrow has read ahead, a further hundred million bytes take no noticeable memory."""
    code = (
        "import resource\nfrom sunzi.cli.main import main\n"
        "for rows in (200_000, 600_000):\n"
        "    with open('long.csv', 'wb') as file:\n"
        "        file.write(b'browser,rest\\n')\n"
        "        for _ in range(rows // 1_000): file.write((b'Chrome,' + b'x' * 250 + b'\\n') * 1_000)\n"
        "    assert main(['privatize', 'plan.json', 'long.csv', '--column', 'browser', '-o', 'out', '--force']) == 0\n"
        "    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=collection.directory, capture_output=True, text=True, check=True
    )
    small, large = (int(line) for line in run.stdout.split())
    unit = 1024 if sys.platform == "linux" else 1  # kilobytes on Linux, bytes elsewhere
    assert (large - small) * unit < 30 << 20
