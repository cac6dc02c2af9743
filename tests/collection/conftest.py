"""Both stores, each behind the same fixtures; PostgreSQL is a real server, one for every process of a test run."""

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

# The helpers beside this file; children that a test starts import them too.
sys.path.insert(0, str(Path(__file__).resolve().parent))

from postgres_servers import NoServer, Server, running_server

from sunzi.collection.opening import open_store
from sunzi.collection.records import Shard
from sunzi.collection.store import Store


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    try:
        with running_server() as started:
            yield started
    except NoServer as reason:
        pytest.skip(str(reason))


@pytest.fixture
def killable_server() -> Iterator[Server]:
    """A server that nobody else uses."""
    try:
        with running_server() as started:
            yield started
    except NoServer as reason:
        pytest.skip(str(reason))


@pytest.fixture(params=["sqlite", "postgres"])
def fresh_address(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], str]:
    """Addresses of stores that do not exist yet, all of one kind."""
    if request.param == "postgres":
        return request.getfixturevalue("server").fresh_address
    numbers = iter(range(1000))
    return lambda: str(tmp_path / f"store{next(numbers)}.db")


@pytest.fixture
def address(fresh_address: Callable[[], str]) -> str:
    return fresh_address()


@pytest.fixture
def opened() -> Iterator[Callable[..., Store]]:
    """Opens stores, and closes them when the test ends."""
    stores: list[Store] = []

    def open_another(address: str, shard: Shard | None = None, create: bool = True) -> Store:
        stores.append(open_store(address, shard, create))
        return stores[-1]

    yield open_another
    for store in stores:
        store.close()


@pytest.fixture
def store(address: str, opened: Callable[..., Store]) -> Store:
    return opened(address)


@pytest.fixture
def other_store(fresh_address: Callable[[], str], opened: Callable[..., Store]) -> Store:
    """Another one of the same kind."""
    return opened(fresh_address())


class SmallDisk:
    """A filesystem of a few megabytes, whose size can be changed."""

    def __init__(self, directory: Path, megabytes: int) -> None:
        self.directory = directory
        _mount("-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(directory))

    def resize(self, megabytes: int) -> None:
        _mount("-o", f"remount,size={megabytes}m", str(self.directory))

    def remove(self) -> None:
        subprocess.run(["umount", "--lazy", str(self.directory)], check=True)


def _mount(*words: str) -> None:
    subprocess.run(["mount", *words], check=True, capture_output=True)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[SmallDisk | None]:
    """None where filesystems cannot be mounted."""
    directory = tmp_path / "small"
    directory.mkdir()
    try:
        disk = SmallDisk(directory, 3)
    except (OSError, subprocess.CalledProcessError):
        yield None
        return
    yield disk
    disk.remove()
    shutil.rmtree(directory)
