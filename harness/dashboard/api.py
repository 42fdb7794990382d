"""The API's routes: JSON documents of the runs, and server-sent events of a run in progress. GET only."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager

from sse_starlette import EventSourceResponse
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from harness.dashboard.bodies import Body
from harness.dashboard.live import watch
from harness.dashboard.run_documents import RunDocuments
from harness.errors import StoreError

logger = logging.getLogger("tfb.dashboard")

RUN_THREADS = 30  # of the 40 that there are: who waits for a run that is first read leaves some for page and list

Produce = Callable[[RunDocuments, Request], bytes | Body]


def run_of(request: Request) -> str:
    """The run in the path."""
    return str(request.path_params["run"])


def query(request: Request, key: str) -> str:
    """A parameter, empty without one."""
    return request.query_params.get(key, "")


DOCUMENTS: dict[str, Produce] = {
    "/api/runs": lambda documents, _: documents.runs(),
    "/api/runs/{run}": lambda documents, request: documents.run(run_of(request)),
    "/api/runs/{run}/tests/{test_type}": lambda documents, request: documents.test(
        run_of(request), request.path_params["test_type"]
    ),
    "/api/runs/{run}/latency/{test_type}": lambda documents, request: documents.latency(
        run_of(request), request.path_params["test_type"]
    ),
    "/api/runs/{run}/baseline": lambda documents, request: documents.baseline(
        run_of(request), query(request, "test_type"), query(request, "base")
    ),
    "/api/runs/{run}/overall": lambda documents, request: documents.overall(
        run_of(request), request.query_params.getlist("test_type")
    ),
    "/api/runs/{run}/cell": lambda documents, request: documents.cell(
        run_of(request), query(request, "implementation"), query(request, "test_type")
    ),
    "/api/runs/{run}/log": lambda documents, request: documents.log(run_of(request), query(request, "path")),
    "/api/compare": lambda documents, request: documents.comparison(query(request, "a"), query(request, "b")),
    "/api/history": lambda documents, request: documents.history(query(request, "implementation")),
    "/api/claims": lambda documents, _: documents.claims(),
    "/api/files/{name}": lambda documents, request: documents.file(request.path_params["name"]),
}


def routes(documents: RunDocuments) -> list[Route]:
    """All routes below /api."""
    threads = asyncio.Semaphore(RUN_THREADS)
    answers = [
        Route(path, document(documents, produce, threads if "{run}" in path else contextlib.nullcontext()))
        for path, produce in DOCUMENTS.items()
    ]
    return [Route("/api/runs/{run}/events", events(documents)), *answers]


def document(
    documents: RunDocuments, produce: Produce, threads: AbstractAsyncContextManager[object]
) -> Callable[[Request], Awaitable[Response]]:
    """A JSON endpoint: files are read in one of the ``threads``; what cannot be found or read is a 404 that says so."""

    async def endpoint(request: Request) -> Response:
        try:
            async with threads:
                found = await run_in_threadpool(produce, documents, request)
        except StoreError as error:
            return JSONResponse({"error": str(error)}, status_code=404)
        except (OSError, ValueError, ArithmeticError, LookupError, RecursionError) as error:
            logger.exception("%s", request.url.path)
            message = f"this document cannot be made of the run's files: {type(error).__name__}"
            return JSONResponse({"error": message}, status_code=500)
        if isinstance(found, bytes):
            return Response(found, media_type="application/json", headers={"cache-control": "no-store"})
        asked = request.headers
        status, content, headers = found.answer(asked.get("accept-encoding", ""), asked.get("if-none-match", ""))
        return Response(content, status, media_type="application/json", headers=headers)

    return endpoint


def events(documents: RunDocuments) -> Callable[[Request], Awaitable[Response]]:
    """The events of a run until it ends."""

    async def endpoint(request: Request) -> Response:
        try:
            run = await run_in_threadpool(documents.open, run_of(request))
        except StoreError as error:
            return JSONResponse({"error": str(error)}, status_code=404)

        async def stream() -> AsyncIterator[bytes]:
            async for told in watch(run.folder):
                yield told.text

        return EventSourceResponse(stream(), headers={"cache-control": "no-store"}, ping=20)

    return endpoint
