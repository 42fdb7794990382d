"""Invented records from a seed: what a run of known speeds would have written. Nothing here is a measurement."""

import math
import random
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from harness.plan.profile import Processes
from harness.records.models import (
    Build,
    CheckResult,
    Closed,
    Errors,
    Gate,
    ImplementationInfo,
    Latency,
    NoiseFloor,
    Outcome,
    RunInfo,
    Trial,
    Verdict,
    WarmUp,
    Window,
)
from harness.tests import records
from harness.tests.doubles import runs

Entry = tuple[str, str, str, str, str, str, str, float]
Cells = Collection[tuple[str, str]]  # implementation, test type

EPOCH = 1_750_000_000.0
BASE = {  # invented requests per second of a middling implementation
    "json": 62_000.0,
    "plaintext": 180_000.0,
    "db": 21_000.0,
    "query": 9_000.0,
    "fortune": 16_000.0,
    "update": 4_000.0,
    "cached-query": 30_000.0,
}
CONCURRENCY = (16, 64, 256)
QUERIES = (1, 5, 10, 20)
REAL: tuple[Entry, ...] = (  # name, language, platform, webserver, database, orm, classification, speed
    ("vertx-web", "Java", "Vert.x", "None", "Postgres", "Raw", "Micro", 1.30),
    ("resteasy", "Java", "Undertow", "Undertow", "Postgres", "Raw", "Micro", 1.27),
    ("es4x", "JavaScript", "Vert.x", "None", "Postgres", "Raw", "Micro", 0.86),
    ("express", "JavaScript", "Node.js", "None", "Postgres", "Raw", "Micro", 0.31),
)
MACHINE = {
    "hostname": "bench-01",
    "os": "Debian GNU/Linux 12",
    "kernel": "6.1.0-37-amd64",
    "cpu_model": "Invented CPU 9000 @ 3.00GHz",
    "cpus_online": 8,
    "cpus_usable": tuple(range(8)),
    "memory_bytes": 32 * 2**30,
    "smt": True,
    "grade": "B",
    "concerns": ("SMT is on: two threads share a core",),
}
MARKUP = (
    "<script>document.title='owned'</script>",
    '"><img src=x onerror=alert(1)>',
    "</script><script>alert(2)</script>",
    "\u202egnp.exe\u202c 日本語 \u0000\u001b[31m",
    "=cmd|' /C calc'!A0",
    "a" * 180,
)


def loads_of(test_type: str) -> tuple[Closed, ...]:
    """The loads of a test type."""
    if test_type in {"query", "update", "cached-query"}:
        return tuple(Closed(connections=64, queries=count) for count in QUERIES)
    return tuple(Closed(connections=count, depth=16 if test_type == "plaintext" else 1) for count in CONCURRENCY)


def slowdown(load: Closed) -> float:
    """How a load's throughput compares with the best load's."""
    if load.queries:
        return 1 / math.pow(load.queries, 0.8)
    return {16: 0.82, 64: 1.0, 256: 0.95}[load.connections]


@dataclass
class Maker:
    """Makes one run's records from a seed."""

    run_id: str
    implementations: Sequence[ImplementationInfo]
    processes: int
    seed: int
    rounds: int = 1
    windows: int = 8
    speeds: dict[str, float] = field(default_factory=lambda: {row[0]: row[7] for row in REAL})

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)

    def speed(self, name: str) -> float:
        """The true speed of an implementation, relative to the middling one."""
        if name not in self.speeds:
            self.speeds[name] = math.exp(self.random.gauss(-0.3, 0.7))
        return self.speeds[name]

    def info(self, *, started_at: float) -> RunInfo:
        """run.json."""
        types = sorted({name for item in self.implementations for name in item.test_types}, key=list(BASE).index)
        names = [item.name for item in self.implementations]
        rules = Processes(minimum=self.processes, maximum=self.processes)
        found = runs.run_info(names, rules, reference=names[0], loads={name: loads_of(name) for name in types})
        floor = NoiseFloor(
            implementation=names[0], profile="standard", measured_at=started_at - 86_400, pairs=6,
            throughput=0.018, cpu_per_request=0.009,
        )  # fmt: skip
        own = {
            "run_id": self.run_id,
            "name": f"Synthetic run {self.run_id}",
            "environment": "invented figures, not a measurement",
            "started_at": started_at,
            "completed_at": started_at + 5_400,
            "command": ("./tfb", "--test", "run", "--profile", "standard", "--seed", str(self.seed)),
            "profile": "standard",
            "seed": self.seed,
            "machine": found.machine.model_copy(update=MACHINE),
            "tools": {"wrk": "4.1.0", "postgres": "15.13", "python": "3.11.2", "java": "25", "node": "20.20.2"},
            "revision": "0123456789abcdef0123456789abcdef01234567",
            "dirty": False,
            "implementations": tuple(self.implementations),
            "noise_floor": floor,
        }
        return found.model_copy(update=own)

    def trials(self, absent: Cells = ()) -> list[Trial]:
        """Of every process, implementation, round, test type and load, but of those that failed verification."""
        return [
            self.trial(item.name, test_type, load, process, round_)
            for process in range(self.processes)
            for item in self.implementations
            for round_ in range(self.rounds)
            for test_type in item.test_types
            if (item.name, test_type) not in absent
            for load in loads_of(test_type)
        ]

    def trial(self, name: str, test_type: str, load: Closed, process: int, round_: int) -> Trial:
        """One trial with windows, percentiles and gates."""
        noise = math.exp(self.random.gauss(0, 0.012) + self.luck(name, process))
        throughput = BASE[test_type] * self.speed(name) * slowdown(load) * noise
        seconds = float(self.windows)
        cpu = 0.9 / (BASE[test_type] * self.speed(name)) * math.exp(self.random.gauss(0, 0.005))
        contended = self.random.random() < 0.04
        first = load == loads_of(test_type)[0] and round_ == 0
        waits = Gate(name="contended", outcome=Outcome.PASS, value=0.01, threshold=0.05)
        if contended:
            waits = waits.model_copy(update={"outcome": Outcome.WARN, "value": 0.08, "word": "contended"})
        found = runs.trial(name, throughput, process, round_, test_type=test_type, load=load, cpu=cpu, gates=(waits,))
        server = {
            "cpu_seconds": cpu * throughput * seconds,
            "rss_peak": (90 + 60 * self.speed(name)) * 2**20 + self.random.random() * 2**22,
            "wait_share": waits.value,
        }
        loader = ("loadgen", "--connections", str(load.connections), "--seconds", f"{seconds:.0f}")
        own = {
            "command": (*loader, f"http://127.0.0.1:8080/{test_type}"),
            "duration": seconds,
            "asked_duration": seconds,
            "requests": int(throughput * seconds),
            "errors": Errors(status=3 if name == "express" and test_type == "update" else 0),
            "latency": None if load.depth > 1 else self.latency(load.connections * load.depth / throughput),
            "server": found.server.model_copy(update=server),
            "database_cpu_seconds": None if test_type in {"json", "plaintext"} else seconds * 0.3,
            "windows": tuple(self.window(second, throughput, cpu, load) for second in range(self.windows)),
            "warm_up": self.warm_up(throughput, cpu, load) if first else None,
            "steady": True,
        }
        return found.model_copy(update=own)

    def luck(self, name: str, process: int) -> float:
        """What a process differs by from the others, as a logarithm."""
        return random.Random(f"{self.seed} {name} {process}").gauss(0, 0.008)

    def latency(self, mean: float) -> Latency:
        """A long-tailed latency distribution around a mean in seconds."""
        spread = {"50": 0.9, "75": 1.15, "90": 1.6, "99": 3.1, "99.9": 6.5, "99.99": 11.0}
        percentiles = {key: mean * factor * self.random.uniform(0.95, 1.05) for key, factor in spread.items()}
        return Latency(
            basis="closed-loop, service time",
            mean=mean,
            stdev=mean * 0.6,
            min=mean * 0.2,
            max=mean * 14,
            percentiles=percentiles,
        )

    def window(self, second: int, throughput: float, cpu: float, load: Closed) -> Window:
        """One second of a load."""
        responses = throughput * self.random.uniform(0.96, 1.04)
        return Window(
            start=float(second),
            duration=1.0,
            responses=round(responses),
            server_cpu=responses * cpu,
            wait_share=0.01,
            rss=150.0 * 2**20,
            connections=load.connections,
        )

    def warm_up(self, throughput: float, cpu: float, load: Closed) -> WarmUp:
        """Six seconds of getting warm."""
        return WarmUp(
            duration=6.0,
            requests=int(throughput * 4),
            steady=True,
            seconds_to_steady=4.0,
            worst_latency=0.35,
            windows=tuple(
                self.window(second, throughput * (1 - math.exp(-second - 0.4)), cpu * (1 + math.exp(-second)), load)
                for second in range(6)
            ),
        )


def implementation(row: Entry) -> ImplementationInfo:
    """What benchmark_config.json would say."""
    name, language, platform, webserver, database, orm, classification, _ = row
    return ImplementationInfo(
        name=name,
        framework=name,
        language=language,
        folder=f"frameworks/{language}/{name}",
        display_name=name,
        approach="Realistic",
        classification=classification,
        platform=platform,
        webserver=webserver,
        database=database,
        orm=orm,
        os="Linux",
        database_os="Linux",
        test_types=tuple(list(BASE)[:6]),
        build=Build(
            status="ok",
            duration=31.4,
            log=f"logs/{safe(name)}/build.log",
            commands=("mvn -q package",) if language == "Java" else ("npm ci",),
            tools={"java": "25"} if language == "Java" else {"node": "20.20.2"},
        ),
    )


def verdict(name: str, test_type: str, *, failed: bool) -> Verdict:
    """What verification found."""
    found = records.verdict(name, test_type)
    clamped = CheckResult(
        check="query-count-clamped", rule="query.3", outcome=Outcome.FAIL,
        message="queries=501 answered with 501 rows", expected="500 objects", actual="501 objects",
    )  # fmt: skip
    wrong = {"outcome": Outcome.FAIL, "results": (*found.results, clamped)}
    return found.model_copy(update=wrong) if failed else found


def safe(name: str) -> str:
    """A name as a folder."""
    return "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in name)[:80]
