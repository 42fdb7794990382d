"""Serves JSON documents about runs from a cache. All routes are read-only."""

import contextlib
import json
import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast
from weakref import WeakValueDictionary

from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from harness import plugins
from harness.dashboard.documents import ClaimsDocument, RunDocument, RunList
from harness.dashboard.results_folder import ResultsFolder
from harness.dashboard.run_documents import FILES, DashboardRun, FileState, compare_runs, file_state
from harness.errors import StoreError
from harness.records import claims

logger = logging.getLogger("tfb.dashboard")

# Errors that the files of a run may cause.
READ_ERRORS = (
    StoreError,
    OSError,
    ValueError,
    ArithmeticError,
    LookupError,
    RecursionError,
)
MAX_CACHED = 256  # maximum number of cached documents; for 500 implementations, a document takes half a megabyte
MAX_CACHED_BYTES = 64 << 20  # maximum total size of cached documents
MAX_CONCURRENT = 2  # maximum number of cached documents made at the same time; each may read half a gigabyte of records
MAX_CONCURRENT_SMALL = 4  # maximum number of uncached documents made at the same time; each may read a large file


@dataclass(frozen=True, kw_only=True)
class CachedDocument:
    """A document about a run or several runs, and the state of their files before it was made."""

    json: bytes
    states: dict[str, list[FileState]]
    until: float  # time.monotonic() until which a document about a run in progress is reused


class Api:
    """The routes of the API, and the documents about the runs in a folder."""

    def __init__(self, runs: ResultsFolder) -> None:
        self.runs = runs
        self._kept: dict[str, CachedDocument] = {}
        # Requests for the same document wait until it has been made.
        self._making = WeakValueDictionary[str, threading.Lock]()
        self._at_once = threading.BoundedSemaphore(MAX_CONCURRENT)
        self._small_at_once = threading.BoundedSemaphore(MAX_CONCURRENT_SMALL)
        self._keeping = threading.Lock()
        self._leads: dict[str, str] = {}  # run -> leading implementation, if the run's document has been made

    def routes(self) -> list[Route]:
        """Return all routes below /api."""
        return [
            self._small_route("/api/runs", lambda _: self.listed()),
            self._small_route("/api/claims", lambda _: self.claims()),
            self._small_route(
                "/api/runs/{run}/log", lambda request: self._open(request).log(_query_parameter(request, "path"))
            ),
            self._small_route("/api/runs/{run}/live", lambda request: self._open(request).live()),
            self._kept_route("", lambda _: (), self.document),
            self._kept_route("/tests/{test_type}", _path_test_type, lambda run, kind: run.test(kind)),
            self._kept_route("/latency/{test_type}", _path_test_type, lambda run, kind: run.latency(kind)),
            self._kept_route(
                "/overall",
                lambda request: tuple(sorted(set(request.query_params.getlist("test_type")))),
                lambda run, *kinds: run.overall(kinds),
            ),
            self._kept_route(
                "/cell",
                lambda request: (_query_parameter(request, "implementation"), _query_parameter(request, "test_type")),
                lambda run, name, kind: run.cell(name, kind),
            ),
            _route("/api/compare", self._compared),
            Route("/views/{view}", self._page_view),
        ]

    def _page_view(self, request: Request) -> Response:
        """Return a plugin's page. The dashboard's content security policy applies to the page."""
        registered = plugins.page_views().get(request.path_params["view"])
        if registered is None:
            return JSONResponse({"error": "no plugin provides this page"}, status_code=404)
        plugin, view = registered
        try:
            with self._small_at_once:
                render = cast("Callable[[Path], str]", plugin.load(view.target))
                return HTMLResponse(render(self.runs.results))
        except Exception as error:  # a plugin may raise any exception
            logger.exception("%s", request.url.path)
            message = f"plugin {plugin.name} cannot make this page: {type(error).__name__}"
            return JSONResponse({"error": message}, status_code=500)

    def _compared(self, request: Request) -> bytes:
        names = (_query_parameter(request, "a"), _query_parameter(request, "b"))
        return self._made(("compare", *names), names, compare_runs)

    def listed(self) -> RunList:
        """Return the list of runs. If a run's document has been made, the entry includes the leader."""
        found = self.runs.listed()
        runs = tuple(run.model_copy(update={"lead": self._leads.get(run.run_id, "")}) for run in found.runs)
        views = {name: view.title for name, (_, view) in plugins.page_views().items()}
        return found.model_copy(update={"runs": runs, "views": views})

    def document(self, run: DashboardRun) -> RunDocument:
        """Return the document of a run, and store the leader for the list of runs."""
        document = run.document()
        first = next(iter(document.sentences.values()), {})
        lead = next(iter(first.get(document.ranking.leading, ())), "")
        self._leads[run.id] = "" if run.info.status == "running" else lead
        return document

    def claims(self) -> ClaimsDocument:
        """Return the verdicts on all claims, or why their file cannot be read."""
        try:
            return ClaimsDocument(verdicts=tuple(claims.latest_verdicts(self.runs.results).values()))
        except StoreError as error:
            return ClaimsDocument(verdicts=(), problem=str(error))

    def warm(self) -> None:
        """Make the documents of the newest runs in advance, because most visitors request them."""
        for run in self.runs.listed().runs[:3]:
            with contextlib.suppress(*READ_ERRORS):  # a request for this run reports the error
                self._made(("", run.run_id), (run.run_id,), self.document)

    def _made(self, words: Sequence[str], names: tuple[str, ...], make: Callable[..., BaseModel]) -> bytes:
        """Return a document about runs from the cache. Make it first if it is missing or if files have changed.

        Args:
            words: Request parameters on which the document depends.
            names: Names of the runs.
            make: Makes the document from the runs.
        """
        key = json.dumps(words)
        folders = [self.runs.folder(name) for name in names]
        with self._making.setdefault(key, threading.Lock()):
            states = {
                file: [file_state(folder / file) for folder in folders] for file in FILES if file != "progress.json"
            }
            found = self._kept.get(key)
            lasts = found and states["run.json"] == found.states["run.json"] and time.monotonic() < found.until
            if found and (lasts or states == found.states):
                return found.json
            with self._at_once:
                began = time.monotonic()
                runs = [DashboardRun(folder) for folder in folders]
                made = make(*runs).model_dump_json().encode()
                ended = time.monotonic()
            growing = any(run.info.status == "running" for run in runs)
            # Reuse the document for 5 s, or for 20 times as long as making it took. Viewers of a run in progress thus
            # use at most 5 % of a CPU.
            until = ended + max(5.0, 20.0 * (ended - began)) if growing else ended
            self._keep(key, CachedDocument(json=made, states=states, until=until))
            return made

    def _keep(self, key: str, made: CachedDocument) -> None:
        """Add a document to the cache. Beyond the limits, remove the documents that were added first."""
        with self._keeping:
            self._kept.pop(key, None)
            self._kept[key] = made
            room, number = MAX_CACHED_BYTES, MAX_CACHED
            for kept in reversed(list(self._kept)):
                room, number = room - len(self._kept[kept].json), number - 1
                if room < 0 or number < 0:
                    self._kept.pop(kept)

    def _kept_route(
        self, path: str, words: Callable[[Request], tuple[str, ...]], make: Callable[..., BaseModel]
    ) -> Route:
        """Return a route for cached documents, which depend on a run and on ``words`` of the request."""

        def made(request: Request) -> bytes:
            name, own = request.path_params["run"], words(request)
            return self._made((path, name, *own), (name,), lambda run: make(run, *own))

        return _route(f"/api/runs/{{run}}{path}", made)

    def _small_route(self, path: str, make: Callable[[Request], BaseModel]) -> Route:
        """Return a route for uncached documents. Only a few are made at the same time."""

        def made(request: Request) -> BaseModel:
            with self._small_at_once:
                return make(request)

        return _route(path, made)

    def _open(self, request: Request) -> DashboardRun:
        return DashboardRun(self.runs.folder(request.path_params["run"]))


def _path_test_type(request: Request) -> tuple[str, ...]:
    """Return the test type in the request's path."""
    return (request.path_params["test_type"],)


def _query_parameter(request: Request, key: str) -> str:
    """Return a query parameter, or an empty string if it is missing."""
    return request.query_params.get(key, "")


def _route(path: str, make: Callable[[Request], BaseModel | bytes]) -> Route:
    """Return a route that maps errors to a status: 404 for unreadable records, and 500 for other errors in files."""

    def endpoint(request: Request) -> Response:
        try:
            found = make(request)
        except StoreError as error:
            return JSONResponse({"error": str(error)}, status_code=404)
        except READ_ERRORS as error:
            logger.exception("%s", request.url.path)
            message = f"cannot make this document from the run's files ({type(error).__name__}); see the log"
            return JSONResponse({"error": message}, status_code=500)
        content = found if isinstance(found, bytes) else found.model_dump_json()
        return Response(content, media_type="application/json", headers={"cache-control": "no-store"})

    return Route(path, endpoint)
