"""The application: routes, refusals, headers, and a collector that lives as long as it does."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

from fastapi import Depends, FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from sunzi._version import __version__
from sunzi.collector import administration, reading, uploads
from sunzi.collector.collector import Collector
from sunzi.collector.guard import Guard
from sunzi.collector.refusals import answer, answer_error, documented, giving
from sunzi.collector.settings import Settings
from sunzi.collector.state import Service, require_admin, service_of
from sunzi.errors import SunziError

_SHARED = re.compile("/v1/collections/[^/]+/(plan|epochs/[^/]+/(plan|reports|batches))")
_PAGE_TYPES = {
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
}


def create_app(settings: Settings, make_collector: Callable[[], Collector]) -> FastAPI:
    """An ASGI application. The collector is made when it starts, and its writing ended when it stops."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        service = Service.start(settings, make_collector())
        app.state.service = service
        try:
            yield
        finally:
            service.writer.close()
            service.collector.store.close()

    # The interactive documentation would load scripts from elsewhere; the description itself is enough.
    app = FastAPI(title="Sunzi collector", version=__version__, lifespan=lifespan, docs_url=None, redoc_url=None)
    app.router.routes.extend(uploads.routes)
    for router in (reading.public, reading.router, administration.router):
        app.include_router(router)
    _add_page(app)
    _add_own_routes(app)
    app.add_exception_handler(SunziError, answer_error)
    app.add_exception_handler(RequestValidationError, _answer_invalid)
    app.add_exception_handler(HTTPException, _answer_http)
    app.add_middleware(uploads.UploadGate, owner=app)
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
    app.openapi = lambda: _described(app)  # type: ignore[method-assign]  # as FastAPI's own documentation does it
    return app


class PublicSharing(CORSMiddleware):
    """Lets pages of other origins fetch plans and upload (CORS), and nothing else."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Add what a browser asks for, where it may be had."""
        shared = scope["type"] == "http" and _SHARED.fullmatch(scope["path"])
        await (super().__call__ if shared else self.app)(scope, receive, send)


def _add_page(app: FastAPI) -> None:
    """An address for each file of the live page. They are listed here, never looked up by what a request names."""
    page = files("sunzi.collector").joinpath("page")
    found = {file.name: file for file in page.iterdir() if file.name.rpartition(".")[2] in _PAGE_TYPES}
    # So that a browser asks for all modules at once, instead of one after another as it finds their imports.
    scripts = sorted(name for name in found if name.endswith(".js"))
    preloads = "".join(f'<link rel="modulepreload" href="{name}">\n' for name in scripts).encode()

    def content(file: Traversable) -> Response:
        data = file.read_bytes()
        if file.name == "index.html":
            data = data.replace(b"</head>", preloads + b"</head>", 1)
        return Response(data, media_type=_PAGE_TYPES[file.name.rpartition(".")[2]])

    for name, file in found.items():
        address = "/" if name == "index.html" else f"/{name}"
        app.add_api_route(address, partial(content, file), include_in_schema=False, response_class=Response)


def _add_own_routes(app: FastAPI) -> None:
    @app.get("/health", tags=["operation"])
    async def health() -> dict[str, str]:
        """The process answers."""
        return {"status": "live"}

    @app.get("/ready", tags=["operation"], responses=giving("application/json") | documented(503))
    def ready(request: Request) -> Response:
        """Reports can be counted now: the writer lives, does not fail, and the store can be written to."""
        service_of(request).readiness.check()
        return JSONResponse({"status": "ready"})

    @app.get(
        "/metrics",
        tags=["operation"],
        dependencies=[Depends(require_admin)],
        responses=giving("text/plain") | documented(401, 403),
        response_class=Response,
    )
    def metrics(request: Request) -> Response:
        """Counters for Prometheus."""
        return Response(service_of(request).metrics.page(), media_type="text/plain; version=0.0.4; charset=utf-8")


async def _answer_invalid(_: Request, error: Exception) -> JSONResponse:
    """A parameter that is missing or malformed, without its value."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    return answer(422, "Invalid", f"{where}: {first['msg']}")


async def _answer_http(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    if isinstance(error.__cause__, SunziError):  # what the framework makes of a body that was refused while it was read
        return await answer_error(request, error.__cause__)
    response = answer(error.status_code, "HTTP", str(error.detail))
    response.headers.update(error.headers or {})
    return response


def _described(app: FastAPI) -> dict[str, Any]:
    """OpenAPI with the one shape of refusals."""
    from fastapi.openapi.utils import get_openapi

    if app.openapi_schema is None:
        schema = get_openapi(title=app.title, version=app.version, routes=app.routes)
        text = {"type": "string"}
        refusal = {"type": "object", "properties": {"error": text, "message": text}, "required": ["error", "message"]}
        schema["paths"] |= uploads.OPERATIONS
        schema.setdefault("components", {}).setdefault("schemas", {})["Refusal"] = refusal
        for path in schema["paths"].values():
            for operation in path.values():
                if "422" in operation["responses"]:
                    operation["responses"]["422"] = documented(422)[422]
        app.openapi_schema = schema
    return app.openapi_schema
