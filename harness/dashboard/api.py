"""The API's routes: JSON documents of the runs, and server-sent events of a run in progress. GET only."""

import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from pathlib import Path

from pydantic import BaseModel
from sse_starlette import EventSourceResponse
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from harness.dashboard import baselines
from harness.dashboard.documents import ClaimsDocument, RunDocument, RunList
from harness.dashboard.kept import Kept
from harness.dashboard.live import watch
from harness.dashboard.runs import Answer, Run, Runs
from harness.errors import StoreError
from harness.records import claims

logger = logging.getLogger("tfb.dashboard")

BROKEN = (StoreError, OSError, ValueError, ArithmeticError, LookupError, RecursionError)  # what files may lead to
NEWEST = 3  # runs that are read before anybody asks

OfRun = Callable[[Run, Request], BaseModel]


def query(request: Request, key: str) -> str:
    """A parameter, empty without one."""
    return request.query_params.get(key, "")


class Api:
    """All documents of a folder of runs."""

    def __init__(self, runs: Runs, source_base: str | None, answer: Answer) -> None:
        self.runs, self._source_base, self._answer = runs, source_base, answer
        self._kept = Kept()
        self._leads: dict[str, str] = {}  # of the runs whose document was made

    def routes(self) -> list[Route]:
        """All routes below /api."""
        of_run: dict[str, OfRun] = {
            "": lambda run, _: self.document(run),
            "/tests/{test_type}": lambda run, request: run.test(request.path_params["test_type"]),
            "/latency/{test_type}": lambda run, request: run.latency_of(request.path_params["test_type"]),
            "/baseline": lambda run, request: baselines.relative_to(
                run, query(request, "test_type"), query(request, "base")
            ),
            "/overall": lambda run, request: baselines.overall(run, set(request.query_params.getlist("test_type"))),
            "/cell": lambda run, request: run.cell(query(request, "implementation"), query(request, "test_type")),
        }
        plain: dict[str, Callable[[Request], BaseModel | bytes]] = {
            "/api/runs": lambda _: self.listed(),
            "/api/runs/{run}/log": lambda request: self._run(request).log(query(request, "path")),
            "/api/history": lambda request: self.runs.history(query(request, "implementation")),
            "/api/claims": lambda _: self.claims(),
            "/api/files/{name}": lambda request: self.runs.file(request.path_params["name"]),
        }
        return [
            Route("/api/runs/{run}/events", self._events),
            Route("/api/compare", self._compared),
            *(Route(path, self._made(make)) for path, make in plain.items()),
            *(Route(f"/api/runs/{{run}}{path}", self._of_run(make)) for path, make in of_run.items()),
        ]

    def listed(self) -> RunList:
        """The list of runs, those that are at hand with who leads."""
        found = self.runs.listed()
        runs = tuple(run.model_copy(update={"lead": self._leads.get(run.run_id, "")}) for run in found.runs)
        return found.model_copy(update={"runs": runs})

    def document(self, run: Run) -> RunDocument:
        """A run's document."""
        document = run.document(run.headlines(), self._source_base, self._answer)
        first = next(iter(document.sentences.values()), {})
        self._leads[run.id] = next(iter(first.get(document.ranking.leading, ())), "")
        return document

    def claims(self) -> ClaimsDocument:
        """The verdicts on all claims; a file of them that cannot be read is its problem."""
        try:
            return ClaimsDocument(verdicts=tuple(claims.latest(self.runs.results).values()))
        except StoreError as error:
            return ClaimsDocument(verdicts=(), problem=str(error))

    async def warm(self) -> None:
        """Read the newest runs before anybody asks for them: they are what most visits are for."""
        for run in (await run_in_threadpool(self.runs.listed)).runs[:NEWEST]:
            with contextlib.suppress(*BROKEN):  # whoever asks for this run is told
                folder = self.runs.folder(run.run_id)
                make = partial(_json, Run(folder), self.document)
                await self._kept.get(f"/api/runs/{run.run_id}?", (folder,), make)

    def _run(self, request: Request) -> Run:
        return self.runs.open(request.path_params["run"])

    def _of_run(self, make: OfRun) -> Callable[[Request], Awaitable[Response]]:
        async def endpoint(request: Request) -> Response:
            return await self._answered(
                request, (request.path_params["run"],), lambda runs: _json(runs[0], lambda run: make(run, request))
            )

        return endpoint

    async def _compared(self, request: Request) -> Response:
        def make(runs: tuple[Run, ...]) -> tuple[bytes, bool]:
            return baselines.comparison(*runs).model_dump_json().encode(), any(run.growing for run in runs)

        return await self._answered(request, (query(request, "a"), query(request, "b")), make)

    async def _answered(
        self, request: Request, names: tuple[str, ...], make: Callable[[tuple[Run, ...]], tuple[bytes, bool]]
    ) -> Response:
        """A document of these runs, made in a thread unless it is at hand."""
        try:
            folders: tuple[Path, ...] = tuple(map(self.runs.folder, names))
            key = f"{request.url.path}?{request.url.query}"
            found = await self._kept.get(key, folders, lambda: make(tuple(map(Run, folders))))
        except BROKEN as error:
            return _refusal(request, error)
        asked = request.headers
        status, content, headers = found.answer(asked.get("accept-encoding", ""), asked.get("if-none-match", ""))
        return Response(content, status, media_type="application/json", headers=dict(headers))

    def _made(self, make: Callable[[Request], BaseModel | bytes]) -> Callable[[Request], Awaitable[Response]]:
        """A document that is made for each who asks."""

        async def endpoint(request: Request) -> Response:
            try:
                found = await run_in_threadpool(make, request)
            except BROKEN as error:
                return _refusal(request, error)
            content = found if isinstance(found, bytes) else found.model_dump_json().encode()
            return Response(content, media_type="application/json", headers={"cache-control": "no-store"})

        return endpoint

    async def _events(self, request: Request) -> Response:
        try:
            folder = self.runs.folder(request.path_params["run"])
        except StoreError as error:
            return _refusal(request, error)

        async def stream() -> AsyncIterator[bytes]:
            async for text in watch(folder):
                yield text

        return EventSourceResponse(stream(), headers={"cache-control": "no-store"}, ping=20)


def _json(run: Run, make: Callable[[Run], BaseModel]) -> tuple[bytes, bool]:
    return make(run).model_dump_json().encode(), run.growing


def _refusal(request: Request, error: Exception) -> Response:
    """What cannot be found or read is a 404 that says so; anything else that a file led to is a 500."""
    if isinstance(error, StoreError):
        return JSONResponse({"error": str(error)}, status_code=404)
    logger.error("%s", request.url.path, exc_info=error)
    message = f"this document cannot be made of the run's files: {type(error).__name__}"
    return JSONResponse({"error": message}, status_code=500)
