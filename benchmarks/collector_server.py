"""The shipped collector with two extra routes to compare with: one does nothing, one commits each report on its own.

:mod:`benchmarks.collector` runs it in a subprocess: ``python -m benchmarks.collector_server DIRECTORY FILES``.
"""

from __future__ import annotations

import asyncio
import resource
import secrets
import sys
from pathlib import Path

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sunzi.client.device.uploads import Upload
from sunzi.collector import Collector, Settings, create_app, open_store
from sunzi.collector.server import make_server
from sunzi.collector.service import service_of
from sunzi.plan import load_plan


def main(directory: Path, files: int) -> None:
    """Serve the plans in this directory, and write the address there once the server listens.

    Unless ``files`` is 0, this process may open no more files than that.
    """
    if files:
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    collector = Collector(open_store(directory / "store.db"))
    for path in (directory / "plans").iterdir():
        collector.open(path.stem, load_plan(path))
    live = collector.find("default")
    settings, alone = Settings(port=0, admin_token=secrets.token_hex(16)), asyncio.Lock()
    app = create_app(collector, settings)

    @app.post("/empty")
    async def empty(request: Request) -> Response:
        """Read the body, because the server closes the connection if it answers earlier, and do nothing else."""
        await request.body()
        return Response(b"{}", media_type="application/json")

    async def one_commit(request: Request) -> Response:
        """Commit one report in one transaction with one flush to disk."""
        upload = Upload.from_bytes(await request.body())
        deposit = service_of(request).collector.deposit(live, upload.identity, upload.content)
        async with alone:
            await run_in_threadpool(collector.store.commit, [deposit])
        return Response(b"{}", media_type="application/json")

    app.router.routes.insert(0, Route("/one-commit", one_commit, methods=["POST"]))

    def started(address: str) -> None:
        (directory / "address.part").write_text(address)
        (directory / "address.part").rename(directory / "address")

    make_server(app, settings, started).run()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
