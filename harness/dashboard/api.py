"""The API's routes: JSON documents of the runs, and server-sent events of a run in progress. GET only."""

import asyncio
import contextlib
import gzip
import hashlib
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel
from sse_starlette import EventSourceResponse
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from harness.dashboard.documents import ClaimsDocument, RunDocument, RunList
from harness.dashboard.live import watch
from harness.dashboard.runs import Answer, Run, Runs, Told, comparison, state_of
from harness.errors import StoreError
from harness.records import claims

logger = logging.getLogger("tfb.dashboard")

BROKEN = (StoreError, OSError, ValueError, ArithmeticError, LookupError, RecursionError)  # what files may lead to


@dataclass(frozen=True, kw_only=True)
class Made:
    """A document of some runs, as their files were before they were read."""

    packed: bytes  # with gzip, once for all viewers
    tag: str  # of HTTP: ETag
    states: tuple[tuple[object, ...], ...]  # of each run's files, run.json first
    until: float  # monotonic; of a run in progress: before this it is shown, whatever its files have gained


class Api:
    """All documents of a folder of runs."""

    def __init__(self, runs: Runs, source_base: str | None, answer: Answer, told: Told) -> None:
        self.runs, self._source_base, self._answer, self._told = runs, source_base, answer, told
        self._kept: dict[str, Made] = {}
        self._making: dict[str, asyncio.Lock] = {}
        self._leads: dict[str, str] = {}  # of the runs whose document was made

    def routes(self) -> list[Route]:
        """All routes below /api."""
        of_run: dict[str, Callable[[Run, Request], BaseModel]] = {
            "": lambda run, _: self.document(run),
            "/tests/{test_type}": lambda run, request: run.test(request.path_params["test_type"]),
            "/latency/{test_type}": lambda run, request: run.latency_of(request.path_params["test_type"]),
            "/overall": lambda run, request: run.overall(request.query_params.getlist("test_type")),
            "/cell": lambda run, request: run.cell(_query(request, "implementation"), _query(request, "test_type")),
        }
        at_once: dict[str, Callable[[Request], BaseModel | bytes]] = {
            "/api/runs": lambda _: self.listed(),
            "/api/runs/{run}/log": lambda request: self.runs.open(request.path_params["run"]).log(
                _query(request, "path")
            ),
            "/api/claims": lambda _: self.claims(),
            "/api/files/{name}": lambda request: self.runs.file(request.path_params["name"]),
        }
        return [
            Route("/api/runs/{run}/events", self._events),
            Route("/api/compare", self._compared),
            *(Route(path, self._at_once(make)) for path, make in at_once.items()),
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
        for run in (await run_in_threadpool(self.runs.listed)).runs[:3]:
            with contextlib.suppress(*BROKEN):  # whoever asks for this run is told
                await self._made(f"/api/runs/{run.run_id}?", (run.run_id,), lambda runs: self.document(runs[0]))

    async def _made(self, key: str, names: tuple[str, ...], make: Callable[[tuple[Run, ...]], BaseModel]) -> Made:
        """A document of these runs: made once, in a thread, for all who ask while their files stay the same."""
        folders = tuple(map(self.runs.folder, names))
        async with self._making.setdefault(key, asyncio.Lock()):
            states = tuple(map(_state, folders))
            found = self._kept.get(key)
            ended = found and [state[0] for state in found.states] != [state[0] for state in states]
            if found and (found.states == states or (not ended and time.monotonic() < found.until)):
                return found
            self._kept[key] = await run_in_threadpool(_make, states, folders, make)
        # The latest tables of 500 implementations are half a megabyte each.
        while len(self._kept) > 256:
            oldest = next(iter(self._kept))
            self._kept.pop(oldest)
            self._making.pop(oldest, None)
        return self._kept[key]

    async def _answered(
        self, request: Request, names: tuple[str, ...], make: Callable[[tuple[Run, ...]], BaseModel]
    ) -> Response:
        try:
            found = await self._made(f"{request.url.path}?{request.url.query}", names, make)
        except BROKEN as error:
            return _refusal(request, error)
        headers = {"cache-control": "no-cache", "etag": found.tag}
        if found.tag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        headers["vary"] = "accept-encoding"
        content = found.packed
        if "gzip" in request.headers.get("accept-encoding", ""):
            headers["content-encoding"] = "gzip"
        else:
            content = gzip.decompress(content)
        return Response(content, media_type="application/json", headers=headers)

    def _of_run(self, make: Callable[[Run, Request], BaseModel]) -> Callable[[Request], Awaitable[Response]]:
        async def endpoint(request: Request) -> Response:
            return await self._answered(request, (request.path_params["run"],), lambda runs: make(runs[0], request))

        return endpoint

    async def _compared(self, request: Request) -> Response:
        return await self._answered(
            request, (_query(request, "a"), _query(request, "b")), lambda runs: comparison(runs[0], runs[1], self._told)
        )

    def _at_once(self, make: Callable[[Request], BaseModel | bytes]) -> Callable[[Request], Awaitable[Response]]:
        """A document that is made for each who asks."""

        async def endpoint(request: Request) -> Response:
            try:
                found = await run_in_threadpool(make, request)
            except BROKEN as error:
                return _refusal(request, error)
            content = found if isinstance(found, bytes) else found.model_dump_json()
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


def _query(request: Request, key: str) -> str:
    """A parameter, empty without one."""
    return request.query_params.get(key, "")


def _state(folder: Path) -> tuple[object, ...]:
    names = ("run.json", "ranking.json", "trials.jsonl", "processes.jsonl", "verdicts.jsonl")
    return tuple(state_of(folder / name) for name in names)


def _make(
    states: tuple[tuple[object, ...], ...], folders: tuple[Path, ...], make: Callable[[tuple[Run, ...]], BaseModel]
) -> Made:
    began = time.monotonic()
    runs = tuple(map(Run, folders))
    json = make(runs).model_dump_json().encode()
    packed, tag = gzip.compress(json, 5, mtime=0), f'"{hashlib.blake2b(json, digest_size=12).hexdigest()}"'
    ended = time.monotonic()
    growing = any(run.info.status == "running" for run in runs)
    # At least 5 s, or 20 times what it took to make: its viewers cost the run a twentieth of a CPU at most.
    until = ended + max(5.0, 20.0 * (ended - began)) if growing else ended
    return Made(packed=packed, tag=tag, states=states, until=until)


def _refusal(request: Request, error: Exception) -> Response:
    """What cannot be found or read is a 404 that says so; anything else that a file led to is a 500."""
    if isinstance(error, StoreError):
        return JSONResponse({"error": str(error)}, status_code=404)
    logger.error("%s", request.url.path, exc_info=error)
    message = f"this document cannot be made of the run's files: {type(error).__name__}"
    return JSONResponse({"error": message}, status_code=500)
