"""One load from its first reading to its last, on scripted counters: every figure of what is seen of it."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.errors import LoadError, ServerDiedError
from harness.measure import observe as observing
from harness.measure.loadgen import Load, LoadResult
from harness.measure.observe import Observation, observe
from harness.paths import REPOSITORY
from harness.records.models import ClientUse, ServerUse, Window
from harness.runtime import Begun, Reading, Sockets
from harness.tests.doubles.fakes_world import FakeClock
from harness.tests.measure.observed import Book, bed, result, target

LOAD = Load(url="http://h:80/json", host="h", accept="*/*", seconds=2.0, connections=4, threads=2)
REQUEST_BYTES = 68  # of "GET /json HTTP/1.1", "Host: h", "Accept: */*", "Connection: keep-alive", with their line ends
# Before the generator, at its first connection, at the ends of two windows, and behind it.
READINGS = (
    {
        "cpu_seconds": 1.0,
        "rss": 900.0,
        "run_seconds": 0.0,
        "wait_seconds": 0.0,
        "throttled_seconds": 0.25,
        "threads": 9,
    },
    {
        "cpu_seconds": 1.1,
        "rss": 800.0,
        "run_seconds": 0.1,
        "wait_seconds": 0.1,
        "throttled_seconds": 0.25,
        "threads": 8,
    },
    {"cpu_seconds": 1.9, "rss": 300.0, "run_seconds": 1.0, "wait_seconds": 0.2, "throttled_seconds": 0.5, "threads": 5},
    {"cpu_seconds": 2.8, "rss": 200.0, "run_seconds": 2.1, "wait_seconds": 0.4, "throttled_seconds": 0.5, "threads": 4},
    {
        "cpu_seconds": 3.0,
        "rss": 250.0,
        "run_seconds": 2.5,
        "wait_seconds": 0.5,
        "throttled_seconds": 0.75,
        "threads": 2,
    },
)


def sockets(connections: int, received: int = 1000, sent: int = 500) -> Sockets:
    return Sockets(connections=connections, bytes_received=received, bytes_sent=sent)


# Before the generator (the harness's own one), twice while it connects, at its first connection, half a second later,
# and at the ends of two windows: 100 and 90 responses of 150 bytes to 200 requests.
LOOKS: tuple[Sockets | None, ...] = (
    sockets(1),
    sockets(2),
    sockets(5),
    sockets(5),
    sockets(6, 8_000, 6_000),
    sockets(5, 16_000, 10_000),
    sockets(4, 29_500, 500 + 200 * REQUEST_BYTES),
)


@dataclass
class Meter:
    """Shows one reading after the other; then it is gone."""

    clock: FakeClock
    readings: Iterator[Mapping[str, Any]]

    def read(self) -> Reading:
        values = next(self.readings, None)
        if values is None:
            raise ServerDiedError("nothing of it lives")
        return Reading(at=self.clock.monotonic(), **values)


@dataclass
class Looks:
    """Shows one look at the connections after the other, the last again and again."""

    looks: list[Sockets | None]
    closed: bool = False

    def read(self) -> Sockets | None:
        return self.looks.pop(0) if len(self.looks) > 1 else self.looks[0]

    def close(self) -> None:
        self.closed = True


@dataclass
class Running:
    """A generator that ends so long after its beginning."""

    clock: FakeClock
    seconds: float
    status: int
    happened: list[object]
    command: Sequence[str] = ("/x/gen", f"{REPOSITORY}/toolset/y", "-c")

    def begin(self) -> None:
        self.happened.append("begin")
        self._ends = self.clock.monotonic() + self.seconds

    def wait(self, seconds: float) -> int | None:
        self.clock.sleep(min(max(0.0, seconds), self._ends - self.clock.monotonic()))
        return self.status if self.clock.monotonic() >= self._ends - 1e-9 else None

    def interrupt(self) -> None:
        self.happened.append("interrupt")
        self._ends = self.clock.monotonic()

    def output(self) -> str:
        return "  printed\n"


@dataclass
class RunningOfTwo(Running):
    """On two clients: one was seen to have begun, the other does not tell."""

    def begun(self) -> Sequence[Begun]:
        one = {"client": "one", "connections": 3, "threads": 2, "word_at": 10.0, "seen_at": 10.5}
        two = {"client": "two", "connections": 1, "threads": 1, "word_at": 12.0, "seen_at": None}
        return [Begun(**values) for values in (one, two)]  # type: ignore[arg-type]


@dataclass
class Script:
    """Server, generator and runtime of one load."""

    readings: Sequence[Mapping[str, Any]] = READINGS
    looks: Sequence[Sockets | None] = LOOKS
    seconds: float = 2.41  # until the generator ends
    status: int = 0
    result: LoadResult = field(default_factory=lambda: result(requests=200, bytes=30_000))
    identities: tuple[str, str] = ("1", "1")
    database: Sequence[Mapping[str, Any]] | None = (
        {"cpu_seconds": 5.0, "rss": None, "run_seconds": None, "wait_seconds": None},
        {"cpu_seconds": 5.75, "rss": None, "run_seconds": None, "wait_seconds": None},
    )
    ticks: Sequence[tuple[float, float] | None] = ((10.0, 1000.0), (30.0, 1100.0))
    others: Sequence[Sequence[Mapping[str, Any]]] = ()
    running: type[Running] = Running
    why: str = ""  # the server is found dead
    happened: list[object] = field(default_factory=list)
    told: list[Window] = field(default_factory=list)
    clock: FakeClock = field(default_factory=FakeClock)

    program = "/x/gen"
    waits_for_go = True
    folder = Path("/made")
    timeout_seconds = 3.0

    def arguments(self, load: Load) -> list[str]:
        assert load == LOAD
        return ["arguments"]

    def read_result(self, load: Load, text: str) -> LoadResult:
        assert (load, text) == (LOAD, "  printed\n")
        return self.result

    def start(self, *words: object, **named: object) -> AbstractContextManager[Running]:
        self.happened.append((words, named))
        return nullcontext(self.running(self.clock, self.seconds, self.status, self.happened))

    def require_alive(self) -> None:
        self.happened.append("alive?")
        if self.why:
            raise ServerDiedError(self.why)

    def observe(self, book: Book | None = None, *, partner: str | None = None, **named: Any) -> Observation:
        identities, ticks = iter(self.identities), iter(self.ticks)
        self.connections = Looks(list(self.looks))
        server = SimpleNamespace(
            identity=lambda: next(identities),
            meter=Meter(self.clock, iter(self.readings)),
            connections=lambda: self.connections,
            require_alive=self.require_alive,
        )
        counted = None if self.database is None else Meter(self.clock, iter(self.database))
        testbed = bed(
            clock=self.clock,
            runtime=SimpleNamespace(generator=self.start, steal_ticks=lambda: next(ticks)),
            generator=SimpleNamespace(
                program=self.program,
                arguments=self.arguments,
                result=self.read_result,
                waits_for_go=self.waits_for_go,
                folder=self.folder,
                timeout_seconds=self.timeout_seconds,
            ),
            tell=self.told.append,
        )
        on = target(
            "json",
            server=server,
            database=SimpleNamespace(meter=lambda: counted),
            others=[Meter(self.clock, iter(other)) for other in self.others],
            ledger=book,
            partner=partner,
        )
        return observe(testbed, on, LOAD, response_bytes=125.0, **named)


@pytest.fixture(autouse=True)
def no_priority(monkeypatch: pytest.MonkeyPatch) -> None:
    """test_observe.py tries the priority itself."""
    monkeypatch.setattr(observing, "woken_promptly", nullcontext)


FIRST = Window(
    start=0.01, duration=1.0, responses=100.0, server_cpu=0.8, wait_share=0.1, rss=300.0, connections=4
)  # fmt: skip
SECOND = Window(
    start=1.01, duration=1.0, responses=90.0, server_cpu=0.9, wait_share=0.1538, rss=200.0, connections=3
)  # fmt: skip
SEEN = Observation(
    started_at=1_700_001_000.0,
    command=("/x/gen", "toolset/y", "-c"),
    result=result(requests=200, bytes=30_000),
    windows=(FIRST, SECOND),
    server=ServerUse(
        cpu_seconds=2.0,
        rss_peak=300.0,
        rss_mean=250.0,
        wait_share=0.1667,
        throttled_seconds=0.5,
        pids=(7, 8),
        threads_peak=5,
    ),
    database_cpu_seconds=0.75,
    steal_share=0.2,
    connections=5,
    idle_cpu_share=None,
    restarted=False,
    responses_per_request=0.95,
)
WITH_PIDS = (*READINGS[:-1], {**READINGS[-1], "pids": (7, 8)})


def test_every_figure_of_a_load_is_what_its_counters_say() -> None:
    script, book = Script(readings=WITH_PIDS), Book()
    assert script.observe(book) == SEEN
    words = (("/x/gen", ["arguments"]), {"waits_for_go": True, "folder": Path("/made")})
    assert script.happened == [words, "begin", "alive?"]
    assert book.told == [("begins", "json"), ("ends", "json")]
    assert script.connections.closed
    assert script.clock.monotonic() == pytest.approx(1002.41)


def test_each_second_is_told_while_it_is_on_by_the_verified_size_of_a_response() -> None:
    script = Script()
    script.observe()
    assert script.told == [
        FIRST.model_copy(update={"responses": 120.0}),
        SECOND.model_copy(update={"responses": 108.0}),
    ]


def test_a_server_that_is_another_one_afterwards_was_restarted() -> None:
    assert Script(identities=("1", "2")).observe().restarted


def test_the_database_s_time_is_not_known_where_a_partner_uses_it_too_or_it_runs_elsewhere() -> None:
    assert Script().observe(partner="b").database_cpu_seconds is None
    assert Script(database=None).observe().database_cpu_seconds is None


@pytest.mark.parametrize(
    ("ticks", "share"),
    [
        (((10.0, 1000.0), (10.0, 1100.0)), 0.0),
        (((10.0, 1000.0), (20.0, 1000.0)), None),
        ((None, (20.0, 1100.0)), None),
        (((10.0, 1000.0), None), None),
    ],
)
def test_what_a_hypervisor_stole_is_a_share_of_all_ticks(ticks: Any, share: float | None) -> None:
    assert Script(ticks=ticks).observe().steal_share == share


def idle(*run_seconds: float) -> list[dict[str, Any]]:
    return [{"cpu_seconds": 9.0, "rss": None, "run_seconds": run, "wait_seconds": None} for run in run_seconds]


def test_the_busiest_of_the_idle_servers_counts_and_one_that_is_gone_does_not() -> None:
    script = Script(others=[idle(1.0, 1.241), idle(1.0, 1.0), idle(1.0), idle()])
    assert script.observe().idle_cpu_share == pytest.approx(0.1)


def test_where_connections_cannot_be_seen_nothing_is_said_of_them() -> None:
    seen = Script(readings=WITH_PIDS, looks=(None,)).observe()
    assert (seen.connections, seen.responses_per_request) == (None, None)
    assert [(window.responses, window.connections) for window in seen.windows] == [(None, None)] * 2
    assert seen.server == SEEN.server


def test_a_meter_that_reads_less_leaves_what_it_does_not_read_unknown() -> None:
    blank = {"rss": None, "run_seconds": None, "wait_seconds": None}
    readings = [{"cpu_seconds": reading["cpu_seconds"], **blank} for reading in READINGS]
    seen = Script(readings=readings).observe()
    assert seen.server == ServerUse(
        cpu_seconds=2.0, rss_peak=None, rss_mean=None, wait_share=None, throttled_seconds=None
    )
    assert [(window.rss, window.wait_share) for window in seen.windows] == [(None, None)] * 2


def test_a_server_that_never_ran_nor_waited_waited_for_no_share() -> None:
    still = [{**reading, "run_seconds": 1.0, "wait_seconds": 1.0} for reading in READINGS]
    assert Script(readings=still).observe().server.wait_share is None


@pytest.mark.parametrize("field", ["run_seconds", "wait_seconds", "throttled_seconds"])
@pytest.mark.parametrize("place", [0, -1])
def test_a_counter_that_was_not_read_once_is_not_known(field: str, place: int) -> None:
    readings: list[dict[str, Any]] = [dict(reading) for reading in READINGS]
    readings[place][field] = None
    use = Script(readings=readings).observe().server
    assert (use.throttled_seconds if field == "throttled_seconds" else use.wait_share) is None


def test_a_generator_that_never_connects_has_five_seconds_and_no_windows() -> None:
    more = [READINGS[1]] * 2
    script = Script(readings=(*READINGS[:2], *more, READINGS[-1]), looks=(sockets(1),), seconds=7.5)
    seen = script.observe()
    assert (seen.windows, seen.connections, seen.responses_per_request) == ((), 0, None)
    assert script.told[0].start == pytest.approx(5.0, abs=0.011)


def test_a_window_at_whose_end_the_generator_was_gone_is_none() -> None:
    gone = (*LOOKS[:-1], sockets(2, 29_500, 14_100))
    assert [window.start for window in Script(looks=gone).observe().windows] == [0.01]
    assert len(Script(looks=(*LOOKS[:-1], sockets(3, 29_500, 14_100))).observe().windows) == 2


def test_a_load_of_one_second_has_its_connections_counted_in_its_middle() -> None:
    script = Script(readings=(*READINGS[:2], READINGS[-1]), seconds=0.9)
    seen = script.observe()
    assert (seen.windows, seen.connections) == ((), 5)
    early = Script(readings=(*READINGS[:2], READINGS[-1]), seconds=0.4).observe()
    assert (early.windows, early.connections) == ((), None)


def test_few_requests_say_nothing_of_responses_for_each() -> None:
    for requests, ratio in ((99, None), (100, pytest.approx(1.9))):
        looks = (*LOOKS[:4], sockets(6), sockets(5), sockets(4, 29_500, 500 + requests * REQUEST_BYTES))
        assert Script(looks=looks).observe().responses_per_request == ratio
    nothing = Script(result=result(requests=0, bytes=0)).observe()
    assert nothing.responses_per_request is None
    assert [window.responses for window in nothing.windows] == [120.0, 108.0]  # by the verified size


def test_a_load_is_ended_at_the_window_that_says_so() -> None:
    script = Script(readings=(*READINGS[:3], READINGS[-1]))
    seen = script.observe(stop=lambda window: window.start < 1)
    assert script.happened[1:] == ["begin", "interrupt", "alive?"]
    assert len(seen.windows) == 1
    assert script.clock.monotonic() == pytest.approx(1001.01)


def test_a_generator_that_fails_is_told_with_its_status_and_last_words() -> None:
    script = Script(status=-9)
    with pytest.raises(LoadError) as failed:
        script.observe()
    assert str(failed.value) == "gen failed (killed by SIGKILL) on http://h:80/json: printed"
    assert script.connections.closed


def test_a_generator_that_does_not_end_is_given_up() -> None:
    """Two seconds of load, three that it may take to end, ten more."""
    script = Script(readings=(*READINGS[:2], *([READINGS[2]] * 40)), seconds=100.0)
    with pytest.raises(LoadError) as failed:
        script.observe()
    assert str(failed.value) == "the generator did not end 13 s after its time on http://h:80/json"
    assert script.clock.monotonic() == pytest.approx(1016.01)
    assert script.connections.closed


def test_a_server_that_dies_under_load_is_told_with_what_it_left() -> None:
    with pytest.raises(ServerDiedError, match="out of memory"):
        Script(readings=READINGS[:3], why="out of memory").observe()
    unexplained = Script(readings=READINGS[:3])
    with pytest.raises(ServerDiedError, match="nothing of it lives"):
        unexplained.observe()
    assert unexplained.happened[-1] == "alive?"


def test_each_client_of_a_load_has_its_own_part_and_beginning() -> None:
    one = result(requests=150, bytes=20_000, duration=2.5, cpu_seconds=0.25, wait_seconds=0.125)
    two = result(requests=50, bytes=10_000, duration=2.0, cpu_seconds=0.5)
    together = result(requests=200, bytes=30_000, parts=(one, two))
    seen = Script(readings=WITH_PIDS, running=RunningOfTwo, result=together).observe()
    assert seen.clients == (
        ClientUse(
            client="one", connections=3, threads=2, requests=150, bytes=20_000, duration=2.5, cpu_seconds=0.25,
            wait_seconds=0.125, begun=0.25, begun_within=0.25,
        ),
        ClientUse(
            client="two", connections=1, threads=1, requests=50, bytes=10_000, duration=2.0, cpu_seconds=0.5,
            wait_seconds=None, begun=2.0, begun_within=0.0,
        ),
    )  # fmt: skip
    for parts in ((), (one,), (one, two, two)):
        unlike = Script(running=RunningOfTwo, result=result(requests=200, bytes=30_000, parts=parts))
        assert unlike.observe().clients == ()
