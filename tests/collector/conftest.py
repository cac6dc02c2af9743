"""Both kinds of store behind the same fixtures, with a real PostgreSQL, and a browser on a live page."""

import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from postgres_servers import NoServer, Server, running_server

from sunzi.collector.epochs import Shard
from sunzi.collector.store import Store
from sunzi.collector.stores import open_store
from sunzi.plan import make_plan


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    try:
        with running_server() as started:
            yield started
    except NoServer as reason:
        pytest.skip(str(reason))


@pytest.fixture
def killable_server() -> Iterator[Server]:
    """A server that no other test uses."""
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
    """Opens stores and closes them when the test ends."""
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
    """Another store of the same kind."""
    return opened(fresh_address())


class SmallDisk:
    """A filesystem of a few megabytes whose size can be changed."""

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
def small_disk() -> Iterator[SmallDisk | None]:
    """None if filesystems cannot be mounted. Not below ``tmp_path``: every pytest that starts closes that to the user
    that PostgreSQL runs as.
    """
    directory = Path(tempfile.mkdtemp(prefix="small-"))
    try:
        disk = SmallDisk(directory, 3)
    except (OSError, subprocess.CalledProcessError):
        yield None
        return
    yield disk
    disk.remove()
    shutil.rmtree(directory)


@pytest.fixture(scope="module")
def browser():
    from browser import find_chromium, open_browser
    from playwright.sync_api import sync_playwright

    find_chromium()
    with sync_playwright() as playwright, open_browser(playwright) as opened:
        yield opened


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    from browser import FRUIT, HELD, live_service

    with live_service(tmp_path_factory.mktemp("page")) as started:
        fruit = make_plan("mss", FRUIT, 1)
        started.open("fruit", fruit, fruit.client(seed=1).report_batch(HELD))
        yield started


@pytest.fixture
def visit(browser, service):
    """Open a page; at the end of the test it must have contacted no other server and had no errors."""
    from browser import open_page
    from playwright.sync_api import expect

    with ExitStack() as stack:
        watches = []

        def opened(query="?collection=fruit", ready=True, url=service.url, **options):
            page, watch = stack.enter_context(open_page(browser, f"{url}/{query}", **options))
            watches.append((watch, url))
            if ready:
                expect(page.locator("#main")).to_have_attribute("aria-busy", "false")
            return page

        opened.watches = watches
        yield opened
        for watch, url in watches:
            assert watch.foreign_requests(url) == []
            assert watch.complaints == []
            assert watch.requests
