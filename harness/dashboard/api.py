"""The API's routes: JSON documents of the runs. GET only."""

import contextlib
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from weakref import WeakValueDictionary

from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from harness.dashboard.documents import ClaimsDocument, RunDocument, RunList
from harness.dashboard.runs import FILES, FileState, Run, Runs, comparison, state_of
from harness.errors import StoreError
from harness.records import claims

logger = logging.getLogger("tfb.dashboard")

BROKEN = (StoreError, OSError, ValueError, ArithmeticError, LookupError, RecursionError)  # what files may lead to
KEPT = 256  # documents: the latest tables of 500 implementations are half a megabyte each


@dataclass(frozen=True, kw_only=True)
class Made:
    """A document of some runs, and their files as they were before they were read."""

    json: bytes
    states: dict[str, list[FileState]]
    until: float  # monotonic; of a run in progress: before this it is shown, whatever its files have gained


class Api:
    """All documents of a folder of runs."""

    def __init__(self, runs: Runs) -> None:
        self.runs = runs
        self._kept: dict[str, Made] = {}
        self._making = WeakValueDictionary[str, threading.Lock]()  # a slow document holds up no other one
        self._leads: dict[str, str] = {}  # of the runs whose document was made

    def routes(self) -> list[Route]:
        """All routes below /api."""
        return [
            _route("/api/runs", lambda _: self.listed()),
            _route("/api/claims", lambda _: self.claims()),
            _route("/api/runs/{run}/log", lambda request: self._open(request).log(_query(request, "path"))),
            _route("/api/runs/{run}/live", lambda request: self._open(request).live()),
            self._kept_route("", lambda run, _: self.document(run)),
            self._kept_route("/tests/{test_type}", lambda run, request: run.test(request.path_params["test_type"])),
            self._kept_route(
                "/latency/{test_type}", lambda run, request: run.latency(request.path_params["test_type"])
            ),
            self._kept_route("/overall", lambda run, request: run.overall(request.query_params.getlist("test_type"))),
            self._kept_route(
                "/cell", lambda run, request: run.cell(_query(request, "implementation"), _query(request, "test_type"))
            ),
            _route(
                "/api/compare",
                lambda request: self._made(
                    f"compare?{request.url.query}", (_query(request, "a"), _query(request, "b")), comparison
                ),
            ),
        ]

    def listed(self) -> RunList:
        """The list of runs, those that are at hand with who leads."""
        found = self.runs.listed()
        runs = tuple(run.model_copy(update={"lead": self._leads.get(run.run_id, "")}) for run in found.runs)
        return found.model_copy(update={"runs": runs})

    def document(self, run: Run) -> RunDocument:
        """A run's document."""
        document = run.document()
        first = next(iter(document.sentences.values()), {})
        lead = next(iter(first.get(document.ranking.leading, ())), "")
        self._leads[run.id] = "" if run.info.status == "running" else lead
        return document

    def claims(self) -> ClaimsDocument:
        """The verdicts on all claims; a file of them that cannot be read is its problem."""
        try:
            return ClaimsDocument(verdicts=tuple(claims.latest(self.runs.results).values()))
        except StoreError as error:
            return ClaimsDocument(verdicts=(), problem=str(error))

    def warm(self) -> None:
        """Read the newest runs before anybody asks for them: they are what most visits are for."""
        for run in self.runs.listed().runs[:3]:
            with contextlib.suppress(*BROKEN):  # whoever asks for this run is told
                self._made(f"/api/runs/{run.run_id}?", (run.run_id,), self.document)

    def _made(self, key: str, names: tuple[str, ...], make: Callable[..., BaseModel]) -> bytes:
        """A document of these runs: made once for all who ask while their files stay the same."""
        folders = [self.runs.folder(name) for name in names]
        with self._making.setdefault(key, threading.Lock()):
            states = {
                file: [state_of(folder / file) for folder in folders] for file in FILES if file != "progress.json"
            }
            found = self._kept.get(key)
            lasts = found and states["run.json"] == found.states["run.json"] and time.monotonic() < found.until
            if found and (lasts or states == found.states):
                return found.json
            began = time.monotonic()
            runs = [Run(folder) for folder in folders]
            json = make(*runs).model_dump_json().encode()
            ended = time.monotonic()
            growing = any(run.info.status == "running" for run in runs)
            # At least 5 s, or 20 times what it took to make: its viewers cost the run a twentieth of a CPU at most.
            until = ended + max(5.0, 20.0 * (ended - began)) if growing else ended
            self._kept.pop(key, None)  # to the end, as the newest
            self._kept[key] = Made(json=json, states=states, until=until)
            for oldest in list(self._kept)[:-KEPT]:
                self._kept.pop(oldest, None)
            return json

    def _kept_route(self, path: str, make: Callable[[Run, Request], BaseModel]) -> Route:
        def made(request: Request) -> bytes:
            key = f"{request.url.path}?{request.url.query}"
            return self._made(key, (request.path_params["run"],), lambda run: make(run, request))

        return _route(f"/api/runs/{{run}}{path}", made)

    def _open(self, request: Request) -> Run:
        return Run(self.runs.folder(request.path_params["run"]))


def _query(request: Request, key: str) -> str:
    """A parameter, empty without one."""
    return request.query_params.get(key, "")


def _route(path: str, make: Callable[[Request], BaseModel | bytes]) -> Route:
    """What cannot be found or read is a 404 that says so; anything else that a file led to is a 500."""

    def endpoint(request: Request) -> Response:
        try:
            found = make(request)
        except StoreError as error:
            return JSONResponse({"error": str(error)}, status_code=404)
        except BROKEN as error:
            logger.exception("%s", request.url.path)
            message = f"this document cannot be made of the run's files: {type(error).__name__}"
            return JSONResponse({"error": message}, status_code=500)
        content = found if isinstance(found, bytes) else found.model_dump_json()
        return Response(content, media_type="application/json", headers={"cache-control": "no-store"})

    return Route(path, endpoint)
