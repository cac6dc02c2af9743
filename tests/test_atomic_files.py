"""Files are complete or absent, even if writing them fails."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

import sunzi
from sunzi.atomic_files import open_atomically, write_atomically

POSIX = os.name == "posix"


def test_the_file_appears_at_the_end_and_not_before(tmp_path):
    target = tmp_path / "out"
    with open_atomically(target) as stream:
        stream.write(b"one ")
        assert not target.exists()
        stream.write(b"two")
    assert target.read_bytes() == b"one two"
    assert os.listdir(tmp_path) == ["out"]


@pytest.mark.parametrize("error", [ValueError("no"), KeyboardInterrupt(), SystemExit(143)], ids=repr)
def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path, error):
    target = tmp_path / "out"
    target.write_bytes(b"old")

    def write_half():
        with open_atomically(target) as stream:
            stream.write(b"half of something new")
            stream.flush()
            raise error

    with pytest.raises(type(error)):
        write_half()
    assert target.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["out"]


def test_permissions_follow_the_mask(tmp_path):
    write_atomically(tmp_path / "out", b"x")
    (tmp_path / "plain").write_bytes(b"x")
    assert (tmp_path / "out").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_directory_is_refused_before_any_work(tmp_path):
    with pytest.raises(IsADirectoryError, match="name a file") as caught, open_atomically(tmp_path):
        pytest.fail("the block must not run")
    assert caught.value.filename == str(tmp_path)


def test_a_missing_directory_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no directory"), open_atomically(tmp_path / "no" / "out"):
        pytest.fail("the block must not run")


@pytest.mark.skipif(not POSIX, reason="symbolic links need privileges except on POSIX")
def test_a_symbolic_link_stays_one(tmp_path):
    (tmp_path / "real").write_bytes(b"old")
    (tmp_path / "link").symlink_to("real")
    write_atomically(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"new"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux has a device that is always full")
def test_a_device_is_written_to_and_not_replaced():
    before = os.stat("/dev/full")
    with pytest.raises(OSError, match="No space left on device") as caught:
        write_atomically("/dev/full", b"x" * 100_000)
    assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, "/dev/full")
    assert os.stat("/dev/full").st_rdev == before.st_rdev


@pytest.mark.skipif(not POSIX, reason="file size limits are POSIX")
def test_a_disk_that_fills_up_half_way(tmp_path):
    """A limit on file size simulates a full disk: the system refuses the write."""
    code = (
        "import resource, sys\nfrom sunzi.atomic_files import open_atomically\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, 150_000))\n"
        "try:\n    with open_atomically('out') as stream:\n"
        "        for _ in range(10): stream.write(b'x' * 50_000)\n"
        "except OSError as error: print(error.filename)\n"
    )
    (tmp_path / "out").write_bytes(b"old")
    environment = os.environ | {"PYTHONPATH": str(Path(sunzi.__file__).parents[1])}
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert (run.returncode, run.stdout.strip(), run.stderr) == (0, "out", "")
    assert (tmp_path / "out").read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["out"]


def test_an_error_of_the_rename_names_the_requested_file(tmp_path, monkeypatch):
    def refuse(self, target):
        raise PermissionError(errno.EACCES, "Permission denied", str(self), None, str(target))

    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(PermissionError) as caught:
        write_atomically(tmp_path / "out", b"x")
    assert caught.value.filename == str(tmp_path / "out")
    assert os.listdir(tmp_path) == []
