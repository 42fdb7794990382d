"""Serves plugins' pages and JSON documents about runs. Most documents are cached. All routes are read-only."""

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

# Errors that reading a run with invalid files may raise.
READ_ERRORS = (
    StoreError,
    OSError,
    ValueError,
    ArithmeticError,
    LookupError,
    RecursionError,
)
MAX_CACHED = 256  # maximum number of cached documents; a document for 500 implementations takes half a megabyte
MAX_CACHED_BYTES = 64 << 20  # maximum total size of cached documents
# Maximum number of documents generated concurrently for the cache; each may require reading half a gigabyte of records.
MAX_CONCURRENT = 2


@dataclass(frozen=True, kw_only=True)
class CachedDocument:
    """A cached document, and the state of the runs' files from which it was generated."""

    json: bytes
    states: dict[str, list[FileState]]
    # Deadline (time.monotonic()). Until then, the document is served even if files other than run.json have changed.
    until: float


class Api:
    """The routes below /api and /views, and a cache of documents about runs."""

    def __init__(self, runs: ResultsFolder) -> None:
        self.runs = runs
        self._cache: dict[str, CachedDocument] = {}
        # One lock per document, so that concurrent requests do not generate the same document twice.
        self._document_locks = WeakValueDictionary[str, threading.Lock]()
        self._cached_slots = threading.BoundedSemaphore(MAX_CONCURRENT)
        self._uncached_slots = threading.BoundedSemaphore(4)  # limits memory, because a request may read a large file
        self._cache_lock = threading.Lock()
        self._leads: dict[str, str] = {}  # run -> sentence that names the top-ranked implementation

    def routes(self) -> list[Route]:
        """Return all routes below /api and /views."""
        return [
            self._uncached_route("/api/runs", lambda _: self.listed()),
            self._uncached_route("/api/claims", lambda _: self.claims()),
            self._uncached_route(
                "/api/runs/{run}/log", lambda request: self._open(request).log(_query_parameter(request, "path"))
            ),
            self._uncached_route("/api/runs/{run}/live", lambda request: self._open(request).live()),
            self._cached_route("", lambda _: (), self.document),
            self._cached_route("/tests/{test_type}", _path_test_type, lambda run, kind: run.test(kind)),
            self._cached_route("/latency/{test_type}", _path_test_type, lambda run, kind: run.latency(kind)),
            self._cached_route(
                "/overall",
                lambda request: tuple(sorted(set(request.query_params.getlist("test_type")))),
                lambda run, *kinds: run.overall(kinds),
            ),
            self._cached_route(
                "/cell",
                lambda request: (_query_parameter(request, "implementation"), _query_parameter(request, "test_type")),
                lambda run, name, kind: run.cell(name, kind),
            ),
            _route("/api/compare", self._comparison),
            Route("/views/{view}", self._page_view),
        ]

    def _page_view(self, request: Request) -> Response:
        """Return a plugin's page. The dashboard's content security policy applies to the page."""
        registered = plugins.page_views().get(request.path_params["view"])
        if registered is None:
            return JSONResponse({"error": "no plugin provides this page"}, status_code=404)
        plugin, view = registered
        try:
            with self._uncached_slots:
                render = cast("Callable[[Path], str]", plugin.load(view.target))
                return HTMLResponse(render(self.runs.results))
        except Exception as error:  # a plugin may raise any exception
            logger.exception("%s", request.url.path)
            message = f"plugin {plugin.name} cannot generate this page ({type(error).__name__}); see the log"
            return JSONResponse({"error": message}, status_code=500)

    def _comparison(self, request: Request) -> bytes:
        names = (_query_parameter(request, "a"), _query_parameter(request, "b"))
        return self._cached_document(("compare", *names), names, compare_runs)

    def listed(self) -> RunList:
        """Return the list of runs. A run's ``lead`` is empty until the run's document has been generated."""
        run_list = self.runs.listed()
        runs = tuple(run.model_copy(update={"lead": self._leads.get(run.run_id, "")}) for run in run_list.runs)
        views = {name: view.title for name, (_, view) in plugins.page_views().items()}
        return run_list.model_copy(update={"runs": runs, "views": views})

    def document(self, run: DashboardRun) -> RunDocument:
        """Return a run's document. Store the summary's first sentence for the list of runs."""
        document = run.document()
        if not run.baseline:
            self._leads[run.id] = "" if run.info.status == "running" else next(iter(document.summary), "")
        return document

    def claims(self) -> ClaimsDocument:
        """Return the latest verdict on each claim, or the reason why the verdicts cannot be read."""
        try:
            return ClaimsDocument(verdicts=tuple(claims.latest_verdicts(self.runs.results).values()))
        except StoreError as error:
            return ClaimsDocument(verdicts=(), problem=str(error))

    def warm(self) -> None:
        """Generate the documents of the three newest runs in advance, because most visitors request them."""
        for run in self.runs.listed().runs[:3]:
            with contextlib.suppress(*READ_ERRORS):  # a request for this run reports the error
                self._cached_document(("", run.run_id), (run.run_id,), self.document)

    def _cached_document(
        self,
        parameters: Sequence[str],
        names: tuple[str, ...],
        make_document: Callable[..., BaseModel],
        *,
        baseline: str = "",
    ) -> bytes:
        """Return a document from the cache. Generate it first if it is missing or outdated."""
        key = json.dumps((*parameters, baseline))
        folders = [self.runs.folder(name) for name in names]
        with self._document_locks.setdefault(key, threading.Lock()):
            states = {
                file: [file_state(folder / file) for folder in folders] for file in FILES if file != "progress.json"
            }
            cached = self._cache.get(key)
            is_fresh = cached and states["run.json"] == cached.states["run.json"] and time.monotonic() < cached.until
            if cached and (is_fresh or states == cached.states):
                return cached.json
            with self._cached_slots:
                started_at = time.monotonic()
                runs = [DashboardRun(folder, baseline=baseline) for folder in folders]
                content = make_document(*runs).model_dump_json().encode()
                ended = time.monotonic()
            in_progress = any(run.info.status == "running" for run in runs)
            # While a run is in progress, reuse its document for 5 s, or for 20 times its generation time, whichever
            # is longer. Generating the document thus takes at most 5 % of a CPU.
            until = ended + max(5.0, 20.0 * (ended - started_at)) if in_progress else ended
            self._store(key, CachedDocument(json=content, states=states, until=until))
            return content

    def _store(self, key: str, document: CachedDocument) -> None:
        """Add a document to the cache. If the cache exceeds its limits, remove the oldest documents."""
        with self._cache_lock:
            self._cache.pop(key, None)
            self._cache[key] = document
            free_bytes, free_entries = MAX_CACHED_BYTES, MAX_CACHED
            for old_key in reversed(list(self._cache)):
                free_bytes, free_entries = free_bytes - len(self._cache[old_key].json), free_entries - 1
                if free_bytes < 0 or free_entries < 0:
                    self._cache.pop(old_key)

    def _cached_route(
        self, path: str, parameters: Callable[[Request], tuple[str, ...]], make_document: Callable[..., BaseModel]
    ) -> Route:
        """Return a route for cached documents. ``make_document`` receives a run and the values from ``parameters``."""

        def made(request: Request) -> bytes:
            name, values = request.path_params["run"], parameters(request)
            baseline = _query_parameter(request, "baseline")
            return self._cached_document(
                (path, name, *values), (name,), lambda run: make_document(run, *values), baseline=baseline
            )

        return _route(f"/api/runs/{{run}}{path}", made)

    def _uncached_route(self, path: str, make_document: Callable[[Request], BaseModel]) -> Route:
        """Return a route for documents that are not cached. At most four are generated concurrently."""

        def made(request: Request) -> BaseModel:
            with self._uncached_slots:
                return make_document(request)

        return _route(path, made)

    def _open(self, request: Request) -> DashboardRun:
        return DashboardRun(self.runs.folder(request.path_params["run"]))


def _path_test_type(request: Request) -> tuple[str, ...]:
    """Return the test type in the request's path, as a tuple with one element."""
    return (request.path_params["test_type"],)


def _query_parameter(request: Request, key: str) -> str:
    """Return a query parameter, or an empty string if it is missing."""
    return request.query_params.get(key, "")


def _route(path: str, make_document: Callable[[Request], BaseModel | bytes]) -> Route:
    """Return a route that responds with 404 on a StoreError, and with 500 on any other read error."""

    def endpoint(request: Request) -> Response:
        try:
            document = make_document(request)
        except StoreError as error:
            return JSONResponse({"error": str(error)}, status_code=404)
        except READ_ERRORS as error:
            logger.exception("%s", request.url.path)
            message = f"cannot generate this document from the run's files ({type(error).__name__}); see the log"
            return JSONResponse({"error": message}, status_code=500)
        content = document if isinstance(document, bytes) else document.model_dump_json()
        return Response(content, media_type="application/json", headers={"cache-control": "no-store"})

    return Route(path, endpoint)
