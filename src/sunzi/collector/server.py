"""The HTTP service: the ASGI application, and the server that runs it in this thread or in the background."""

from __future__ import annotations

import asyncio
import gc
import re
import socket
import sys
import tempfile
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from sunzi._version import __version__
from sunzi.client.errors import StoreError, SunziError
from sunzi.collector.collector import Collector, LiveEpoch, OldPlan
from sunzi.collector.settings import Settings
from sunzi.collector.stores import open_store
from sunzi.errors import MissingExtraError
from sunzi.plan import Plan

try:
    import uvicorn
    from fastapi.applications import FastAPI  # where OpenTelemetry's instrumentation does not replace it
    from fastapi.exceptions import RequestValidationError
    from starlette.concurrency import run_in_threadpool
    from starlette.exceptions import HTTPException
    from starlette.middleware.cors import CORSMiddleware
    from starlette.responses import Response
    from starlette.types import Receive, Scope, Send

    from sunzi.collector import (
        administration_routes,
        discovery_routes,
        group_routes,
        publication_routes,
        query_routes,
        routes,
        trend_routes,
        uploads,
    )
    from sunzi.collector.limits import ACCEPTED_AT_ONCE, AcceptErrors, Guard, protocol_for
    from sunzi.collector.refusals import documented, refuse, refuse_http, refuse_invalid
    from sunzi.collector.service import Service
except ImportError as missing:
    raise MissingExtraError("the collector", "serve") from missing

# A commit needs the interpreter a few dozen times; at the default interval it would wait 5 ms each time under load.
_SWITCH_SECONDS = 0.0005
_BACKLOG = 2048
_GRACE_SECONDS = 10
_SHARED = re.compile("/v1/collections/[^/]+/(plan|epochs/[^/]+/(plan(/[^/]+)?|reports|batches))")
_PAGE_TYPES = {
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
}


@dataclass(frozen=True)
class RunningCollector:
    """A collector that serves HTTP on a background thread; see :func:`serve`.

    >>> import sunzi
    >>> with serve(sunzi.make_plan("grr", ["apple", "pear"], epsilon=1)) as running:
    ...     second = running.open("colours", sunzi.make_plan("grr", ["red", "blue"], epsilon=1))
    ...     running.collector.collections()
    ['colours', 'default']
    """

    url: str
    """``http://HOST:PORT``"""
    collector: Collector
    app: FastAPI
    _thread: threading.Thread

    def open(self, collection: str, plan: Plan, *, old_plan: OldPlan | None = None) -> LiveEpoch:
        """Open an epoch with this plan, or return the open one that has it; see :meth:`Collector.open`."""
        return self.collector.open(collection, plan, old_plan=old_plan)

    def close(self, collection: str, number: int) -> LiveEpoch:
        """Close an epoch for good; see :meth:`Collector.close`."""
        return self.collector.close(collection, number)

    def wait(self) -> None:
        """Block until Ctrl+C is pressed."""
        with suppress(KeyboardInterrupt):
            self._thread.join()


@contextmanager
def serve(
    collections: Plan | Mapping[str, Plan],
    *,
    store: str | Path | None = None,
    host: str | None = None,
    port: int | None = None,
    settings: Settings | None = None,
    old_plan: OldPlan | None = None,
) -> Iterator[RunningCollector]:
    """Run a collector on a background thread; on exit, commit all accepted reports and stop.

    Parameters
    ----------
    collections: a plan, or a mapping from names of collections to plans. A plan without a name is that of the store's
        only collection, or of ``default`` in a new store.
    store: a path or ``postgresql://…``; by default a temporary SQLite file, deleted on exit.
    host, port: where to listen; by default a free port of 127.0.0.1. StoreError is raised if the port is taken.
    settings: limits, secrets, and ``host`` and ``port`` where these are not given.
    old_plan: what to do if a collection's open epoch has another plan: "close" it, or "keep" it open for late reports;
        by default this is an error.

    >>> import sunzi
    >>> with serve(sunzi.make_plan("grr", ["yes", "no"], epsilon=1)) as collector:
    ...     collector.url
    'http://127.0.0.1:...'
    """
    chosen = settings or Settings(port=0)
    chosen = replace(chosen, host=chosen.host if host is None else host, port=chosen.port if port is None else port)
    with ExitStack() as stack:
        if store is None:
            store = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sunzi-"))) / "store.db"
        listening = stack.enter_context(listen(chosen.host, chosen.port))
        opened = open_store(store)
        stack.callback(opened.close)
        collector = Collector(opened)
        plans = {collector.unnamed(): collections} if isinstance(collections, Plan) else collections
        collector.open_all(plans, old_plan=old_plan)
        yield stack.enter_context(_in_background(create_app(collector, chosen), chosen, collector, listening))


@contextmanager
def _in_background(
    app: FastAPI, settings: Settings, collector: Collector, listening: socket.socket
) -> Iterator[RunningCollector]:
    urls: list[str] = []
    started = threading.Event()

    def announce(url: str) -> None:
        urls.append(url)
        started.set()

    def run() -> None:
        try:
            server.run(sockets=[listening])
        finally:
            started.set()

    server = make_server(app, settings, announce)
    thread = threading.Thread(target=run, name="sunzi-collector", daemon=True)
    thread.start()
    try:
        started.wait()
        if not urls:
            raise StoreError("the collector could not start; its log says why")
        yield RunningCollector(urls[0], collector, app, thread)
    finally:
        server.should_exit = True
        thread.join()


def listen(host: str, port: int) -> socket.socket:
    """Bind a port, before anything is opened; StoreError if it is taken."""
    try:
        listening = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        reason = str(error.strerror).partition(" (while")[0]  # Python repeats the address
        raise StoreError(
            f"cannot listen on {host}, port {port}: {reason}; choose another port, or 0 for any free one"
        ) from error
    # Connections inherit this. Otherwise the body of each response but the first waits 40 ms for the client's delayed
    # acknowledgement of its head; asyncio sets it only for sockets that it creates itself.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening


def make_server(app: FastAPI, settings: Settings, started: Callable[[str], None]) -> uvicorn.Server:
    """A server for ``app``; its ``run()`` serves until it is stopped.

    Parameters
    ----------
    app: an application made by :func:`create_app`.
    settings: the settings of that application.
    started: called with the URL when the server listens.
    """
    config = uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        http=protocol_for(settings),
        ws="none",
        loop="asyncio",
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=bool(settings.trusted_proxies),
        forwarded_allow_ips=list(settings.trusted_proxies) or None,
        backlog=ACCEPTED_AT_ONCE,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=_GRACE_SECONDS,
    )
    return _Server(config, started)


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, started: Callable[[str], None]) -> None:
        super().__init__(config)
        self._announce = started

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve with a short thread switch interval and a small heap to collect; restore both afterwards."""
        before = sys.getswitchinterval()
        sys.setswitchinterval(_SWITCH_SECONDS)
        gc.freeze()  # else each full collection stops all requests for 50 ms, to look through modules and plans
        try:
            await super().serve(sockets)
        finally:
            gc.unfreeze()
            sys.setswitchinterval(before)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, then announce the URL."""
        asyncio.get_running_loop().set_exception_handler(AcceptErrors())
        await super().startup(sockets)
        for listening in [each for server in getattr(self, "servers", ()) for each in server.sockets]:
            # Let more connections wait in the kernel than the event loop accepts at once.
            with socket.fromfd(listening.fileno(), listening.family, listening.type) as same:
                same.listen(_BACKLOG)
        if self.started and self.servers:
            host, port = self.servers[0].sockets[0].getsockname()[:2]
            self._announce(f"http://{f'[{host}]' if ':' in host else host}:{port}")


def create_app(collector: Collector, settings: Settings | None = None) -> FastAPI:
    """An ASGI application that serves a collector; on shutdown it commits all accepted reports and closes the store.

    Parameters
    ----------
    collector: the collections to serve.
    settings: limits and secrets. A server other than Sunzi's own must limit headers itself.

    >>> store = open_store("collector.db")
    >>> create_app(Collector(store)).title
    'Sunzi collector'
    >>> store.close()
    """
    settings = settings or Settings()
    collector.store.claim()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        app.state.service = service = Service.start(settings, collector)
        try:
            yield
        finally:
            await run_in_threadpool(service.stop)  # requests are answered meanwhile

    app = FastAPI(
        title="Sunzi collector",
        version=__version__,
        lifespan=lifespan,
        docs_url=None,  # the interactive documentation loads scripts from other sites
        redoc_url=None,
        generate_unique_id_function=lambda route: route.name,
        # Otherwise FastAPI records requests as soon as anything in this process sets up OpenTelemetry.
        telemetry={"tracing": False, "metrics": False, "logs": False, "auto_configure": False},
    )
    others = (administration_routes, discovery_routes, group_routes, publication_routes, query_routes, trend_routes)
    for router in (uploads.router, *routes.ROUTERS, *(module.router for module in others)):
        app.include_router(router)
    _add_page(app)
    app.add_exception_handler(SunziError, refuse)
    app.add_exception_handler(RequestValidationError, refuse_invalid)
    app.add_exception_handler(HTTPException, refuse_http)
    app.add_middleware(uploads.UploadGate)
    if settings.allow_origins:
        app.add_middleware(
            PublicSharing,
            allow_origins=list(settings.allow_origins),
            allow_methods=["GET", "POST"],
            allow_headers=["Authorization"],
            expose_headers=["Retry-After"],
            max_age=3600,
        )
    app.add_middleware(Guard, settings=settings)
    app.openapi = lambda: _openapi(app)  # type: ignore[method-assign]  # FastAPI's documented way to extend it
    return app


class PublicSharing(CORSMiddleware):
    """Lets pages of other origins fetch plans and upload (CORS), and nothing else."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        shared = scope["type"] == "http" and _SHARED.fullmatch(scope["path"])
        await (super().__call__ if shared else self.app)(scope, receive, send)


def _add_page(app: FastAPI) -> None:
    """Add a route for each file of the live page, so that no request can name any other file."""
    page = files("sunzi.collector").joinpath("page")
    found = {file.name: file for file in page.iterdir() if file.name.rpartition(".")[2] in _PAGE_TYPES}
    # Preloading lets a browser request all modules at once instead of import by import.
    scripts = sorted(name for name in found if name.endswith(".js"))
    preloads = "".join(f'<link rel="modulepreload" href="{name}">\n' for name in scripts).encode()

    def content(file: Traversable) -> Response:
        data = file.read_bytes()
        if file.name == "index.html":
            data = data.replace(b"</head>", preloads + b"</head>", 1)
        return Response(data, media_type=_PAGE_TYPES[file.name.rpartition(".")[2]])

    for name, file in found.items():
        path = "/" if name == "index.html" else f"/{name}"
        app.add_api_route(path, partial(content, file), name=name, include_in_schema=False, response_class=Response)


def _openapi(app: FastAPI) -> dict[str, Any]:
    """FastAPI's OpenAPI description, with Sunzi's shape of refusals."""
    from fastapi.openapi.utils import get_openapi

    if app.openapi_schema is None:
        schema = get_openapi(title=app.title, version=app.version, routes=app.routes)
        text = {"type": "string"}
        refusal = {"type": "object", "properties": {"error": text, "message": text}, "required": ["error", "message"]}
        schema.setdefault("components", {}).setdefault("schemas", {})["Refusal"] = refusal
        for path in schema["paths"].values():
            for operation in path.values():
                if "422" in operation["responses"]:
                    operation["responses"]["422"] = documented(422)[422]
        app.openapi_schema = schema
    return app.openapi_schema
