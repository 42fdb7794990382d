"""``python -m harness.dashboard.sample_data FOLDER``: deterministic runs to look at, and to test the dashboard against.

``small`` is what a good run of four implementations looks like, ``second`` the same a week later, ``hostile`` is full
of markup and broken values, ``large`` holds 500 implementations x 7 test types. The figures are invented; nothing here
is a measurement.
"""

import argparse
import json
import math
import random
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

from harness.model import (
    Build,
    CheckResult,
    Errors,
    Gate,
    ImplementationInfo,
    Latency,
    Level,
    Machine,
    NoiseFloor,
    Outcome,
    ReplicateRecord,
    RunInfo,
    Sample,
    ServerUse,
    Verdict,
    WarmUp,
    Window,
)
from harness.rank.model import Estimate, Ranking, RankInterval, Ratio, Row, Score, Standing, Table, TestTypeRanking

Status = Literal["running", "complete", "failed", "interrupted"]

Entry = tuple[str, str, str, str, str, str, str, float]

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
MARKUP = (
    "<script>document.title='owned'</script>",
    '"><img src=x onerror=alert(1)>',
    "</script><script>alert(2)</script>",
    "\u202egnp.exe\u202c 日本語 \u0000\u001b[31m",
    "=cmd|' /C calc'!A0",
    "a" * 180,
)


def levels_of(test_type: str) -> tuple[Level, ...]:
    """The levels of a test type."""
    if test_type in {"query", "update", "cached-query"}:
        return tuple(Level(concurrency=64, queries=count) for count in QUERIES)
    return tuple(Level(concurrency=count, pipeline=16 if test_type == "plaintext" else 1) for count in CONCURRENCY)


def slowdown(level: Level) -> float:
    """How a level's throughput compares with the best level's."""
    if level.queries:
        return 1 / math.pow(level.queries, 0.8)
    return {16: 0.82, 64: 1.0, 256: 0.95}[level.concurrency]


class Maker:
    """Makes one run's records from a seed."""

    def __init__(self, run_id: str, implementations: Sequence[ImplementationInfo], *, blocks: int, seed: int) -> None:
        self.run_id = run_id
        self.implementations = implementations
        self.blocks = blocks
        self.random = random.Random(seed)
        self.seed = seed
        self.speeds: dict[str, float] = {}
        self.windows = 8

    def speed(self, name: str) -> float:
        """The true speed of an implementation, relative to the middling one."""
        if name not in self.speeds:
            known: list[float] = [row[7] for row in REAL if row[0] == name]
            self.speeds[name] = known[0] if known else math.exp(self.random.gauss(-0.3, 0.7))
        return self.speeds[name]

    def info(self, *, started_at: float, status: Status = "complete") -> RunInfo:
        """run.json."""
        types = sorted({name for item in self.implementations for name in item.test_types}, key=list(BASE).index)
        return RunInfo(
            run_id=self.run_id,
            name=f"Synthetic run {self.run_id}",
            environment="invented figures, not a measurement",
            status=status,
            started_at=started_at,
            completed_at=None if status == "running" else started_at + 5_400,
            command=("./tfb", "--test", "run", "--profile", "standard", "--seed", str(self.seed)),
            profile="standard",
            runtime="local",
            seed=self.seed,
            settings={"duration_seconds": 15, "server_cpus": "0", "other_cpus": "1", "profile": "standard"},
            reference=self.implementations[0].name,
            machine=Machine(
                hostname="bench-01",
                os="Debian GNU/Linux 12",
                kernel="6.1.0-37-amd64",
                cpu_model="Invented CPU 9000 @ 3.00GHz",
                cpus_online=8,
                cpus_usable=tuple(range(8)),
                memory_bytes=32 * 2**30,
                governor="performance",
                turbo=False,
                smt=True,
                grade="B",
                concerns=("SMT is on: two threads share a core",),
            ),
            tools={"wrk": "4.1.0", "postgres": "15.13", "python": "3.11.2", "java": "25", "node": "20.20.2"},
            revision="0123456789abcdef0123456789abcdef01234567",
            dirty=False,
            implementations=tuple(self.implementations),
            levels={name: levels_of(name) for name in types},
            blocks_expected=self.blocks,
            blocks_maximum=self.blocks,
            noise_floor=NoiseFloor(
                implementation=self.implementations[0].name,
                profile="standard",
                measured_at=started_at - 86_400,
                pairs=6,
                throughput=0.018,
                cpu_per_request=0.009,
            ),
            schedule=tuple(
                tuple(self.random.sample([item.name for item in self.implementations], len(self.implementations)))
                for _ in range(self.blocks)
            ),
        )

    def sample(self, name: str, test_type: str, level: Level, replicate: int, started_at: float) -> Sample:
        """One sample with windows, percentiles and gates."""
        noise = math.exp(self.random.gauss(0, 0.012))
        throughput = BASE[test_type] * self.speed(name) * slowdown(level) * noise
        seconds = float(self.windows)
        cpu = 0.9e6 / (BASE[test_type] * self.speed(name)) / 1e6 * math.exp(self.random.gauss(0, 0.005))
        contended = self.random.random() < 0.04
        mean = level.concurrency * level.pipeline / throughput
        return Sample(
            id=f"{name}/{test_type}/{level.label}/r{replicate}",
            implementation=name,
            test_type=test_type,
            level=level,
            block=replicate,
            replicate=replicate,
            started_at=started_at,
            command=(
                *("wrk", "-H", "Host: 127.0.0.1", "--latency", "-d", f"{seconds:.0f}", "-c", str(level.concurrency)),
                *("-t", "2", "-s", "toolset/wrk/report.lua", f"http://127.0.0.1:8080/{test_type}"),
            ),
            duration=seconds,
            asked_duration=seconds,
            requests=int(throughput * seconds),
            bytes=int(throughput * seconds * 160),
            errors=Errors(status=3 if name == "express" and test_type == "update" else 0),
            throughput=throughput,
            cpu_per_request=cpu,
            latency=None if level.pipeline > 1 else self.latency(mean),
            server=ServerUse(
                cpu_seconds=cpu * throughput * seconds,
                rss_peak=(90 + 60 * self.speed(name)) * 2**20 + self.random.random() * 2**22,
                rss_mean=(80 + 60 * self.speed(name)) * 2**20,
                wait_share=0.08 if contended else 0.01,
                throttled_seconds=None,
                pids=(4242,),
            ),
            generator_cpu_seconds=seconds * 0.4,
            generator_threads=2,
            database_cpu_seconds=None if test_type in {"json", "plaintext"} else seconds * 0.3,
            windows=tuple(self.window(second, throughput, cpu, level) for second in range(self.windows)),
            warm_up=self.warm_up(throughput, cpu, level) if level == levels_of(test_type)[0] else None,
            steady=True,
            gates=(
                Gate(name="errors", outcome=Outcome.PASS, value=0, threshold=0),
                Gate(name="connections", outcome=Outcome.PASS, value=level.concurrency, threshold=level.concurrency),
                Gate(
                    name="contended",
                    outcome=Outcome.WARN if contended else Outcome.PASS,
                    value=0.08 if contended else 0.01,
                    threshold=0.05,
                    word="contended" if contended else "",
                ),
            ),
        )

    def latency(self, mean: float) -> Latency:
        """A long-tailed latency distribution around a mean in seconds."""
        spread = {"50": 0.9, "75": 1.15, "90": 1.6, "99": 3.1, "99.9": 6.5, "99.99": 11.0}
        percentiles = {key: mean * factor * self.random.uniform(0.95, 1.05) for key, factor in spread.items()}
        return Latency(
            basis="closed-loop, wrk-corrected",
            mean=mean,
            stdev=mean * 0.6,
            min=mean * 0.2,
            max=mean * 14,
            percentiles=percentiles,
        )

    def window(self, second: int, throughput: float, cpu: float, level: Level) -> Window:
        """One second of a load."""
        responses = throughput * self.random.uniform(0.96, 1.04)
        return Window(
            start=float(second),
            duration=1.0,
            responses=round(responses),
            server_cpu=responses * cpu,
            wait_share=0.01,
            rss=150.0 * 2**20,
            connections=level.concurrency,
        )

    def warm_up(self, throughput: float, cpu: float, level: Level) -> WarmUp:
        """Six seconds of getting warm."""
        return WarmUp(
            duration=6.0,
            requests=int(throughput * 4),
            steady=True,
            seconds_to_steady=4.0,
            requests_to_steady=int(throughput * 3),
            worst_latency=0.35,
            windows=tuple(
                self.window(second, throughput * (1 - math.exp(-second - 0.4)), cpu * (1 + math.exp(-second)), level)
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


def estimate(values: Sequence[float]) -> Estimate:
    """Median and a plain t-like interval: good enough to draw."""
    middle = statistics.median(values)
    half = 2.57 * statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else None
    low, high = (None, None) if half is None else (middle - half, middle + half)
    return Estimate(median=middle, low=low, high=high, replicates=len(values), values=tuple(values))


def standings(estimates: dict[str, Estimate], reference: str, *, descending: bool) -> dict[str, Standing]:
    """Places by interval overlap: not the project's statistics, but of the same shape."""
    order = sorted(estimates, key=lambda name: estimates[name].median, reverse=descending)
    best = estimates[order[0]].median
    base = estimates[reference].median if reference in estimates else None
    result = {}
    group, leader = 0, None
    bounds = {name: (item.low or item.median, item.high or item.median) for name, item in estimates.items()}
    for position, name in enumerate(order, start=1):
        mine = bounds[name]
        near = order[max(0, position - 40) : position + 40]
        over = sum(bounds[other][1] < mine[0] for other in near)
        under = sum(bounds[other][0] > mine[1] for other in near)
        better, worse = (under, over) if descending else (over, under)
        skipped, after = max(0, position - 40), max(0, len(order) - position - 40)
        if leader is None or not (bounds[leader][0] <= mine[1] and mine[0] <= bounds[leader][1]):
            group, leader = group + 1, name
        item = estimates[name]
        relative = (item.high - item.low) / 2 / item.median if item.high is not None and item.low is not None else 0.0

        def ratio(to: float | None, middle: float = item.median, spread: float = relative) -> Ratio | None:
            if to is None:
                return None
            return Ratio(value=middle / to, low=middle / to * (1 - spread), high=middle / to * (1 + spread))

        result[name] = Standing(
            estimate=item,
            position=position,
            rank=RankInterval(low=1 + skipped + better, high=len(order) - after - worse),
            tie_group=group,
            to_reference=ratio(base),
            to_best=ratio(best),
        )
    return result


def table(test_type: str, level: Level | None, samples: Sequence[Sample], reference: str) -> Table:
    """The table of one level (``level`` None: of each implementation's best one)."""
    by_name: dict[str, dict[Level, list[Sample]]] = {}
    for sample in samples:
        if level in (None, sample.level):
            by_name.setdefault(sample.implementation, {}).setdefault(sample.level, []).append(sample)
    chosen = {
        name: max(cells.values(), key=lambda group: statistics.median(item.throughput for item in group))
        for name, cells in by_name.items()
    }
    throughput = standings(
        {name: estimate([item.throughput for item in group]) for name, group in chosen.items()},
        reference,
        descending=True,
    )
    cpu = standings(
        {name: estimate([item.cpu_per_request or 0.0 for item in group]) for name, group in chosen.items()},
        reference,
        descending=False,
    )
    rows = [
        Row(
            implementation=name,
            level=chosen[name][0].level,
            throughput=throughput[name],
            cpu_per_request=cpu[name],
            rss_peak=statistics.median(item.server.rss_peak or 0.0 for item in chosen[name]),
            first_answer=0.2 + 0.9 / throughput[name].position,
            errors=sum(item.errors.total for item in chosen[name]),
            words=tuple(sorted({gate.word for item in chosen[name] for gate in item.gates if gate.word})),
            samples=len(chosen[name]),
        )
        for name in throughput
    ]
    count = len(rows)
    return Table(test_type=test_type, level=level, rows=tuple(rows), comparisons=count * (count - 1) // 2)


def ranking(info: RunInfo, samples: Sequence[Sample]) -> Ranking:
    """ranking.json."""
    reference = info.reference or ""
    tests = {}
    for test_type, levels in info.levels.items():
        mine = [sample for sample in samples if sample.test_type == test_type]
        tests[test_type] = TestTypeRanking(
            test_type=test_type,
            headline=with_missing(table(test_type, None, mine, reference), info),
            levels=tuple(table(test_type, level, mine, reference) for level in levels),
        )
    return Ranking(
        run_id=info.run_id,
        reference=reference,
        test_types=tests,
        overall=overall(info, tests),
        noise_floor=info.noise_floor,
        notes=("Figures are invented to show the page.",),
    )


def with_missing(given: Table, info: RunInfo) -> Table:
    """The same table with an unranked row for each implementation that has none."""
    there = {row.implementation for row in given.rows}
    missing = tuple(
        Row(
            implementation=item.name,
            level=None,
            throughput=None,
            cpu_per_request=None,
            rss_peak=None,
            first_answer=None,
            errors=0,
            ranked=False,
            reason="verification failed",
        )
        for item in info.implementations
        if item.name not in there
    )
    return given.model_copy(update={"rows": given.rows + missing})


def overall(info: RunInfo, tests: dict[str, TestTypeRanking]) -> tuple[Score, ...]:
    """Geometric means of the ratios to the reference."""
    scores = []
    for item in info.implementations:
        ratios = {}
        for name, test in tests.items():
            row = next((row for row in test.headline.rows if row.implementation == item.name), None)
            if row and row.throughput and row.throughput.to_reference:
                ratios[name] = row.throughput.to_reference.value
        missing = tuple(name for name in tests if name not in ratios)
        score = None if missing else statistics.geometric_mean(ratios.values())
        scores.append((item.name, score, ratios, missing))
    scores.sort(key=lambda entry: -(entry[1] or 0))
    return tuple(
        Score(
            implementation=name,
            score=score,
            low=score * 0.985 if score else None,
            high=score * 1.015 if score else None,
            cpu_score=score,
            ratios=ratios,
            missing=missing,
            rank=RankInterval(low=place, high=place) if score else None,
        )
        for place, (name, score, ratios, missing) in enumerate(scores, start=1)
    )


def verdict(name: str, test_type: str, replicate: int, *, failed: bool) -> Verdict:
    """What verification found."""
    results = [
        CheckResult(check="status-200", rule="common.1", outcome=Outcome.PASS),
        CheckResult(
            check="query-count-clamped",
            rule="query.3",
            outcome=Outcome.FAIL if failed else Outcome.PASS,
            message="queries=501 answered with 501 rows" if failed else "",
            expected="500 objects" if failed else None,
            actual="501 objects" if failed else None,
        ),
    ]
    return Verdict(
        implementation=name,
        test_type=test_type,
        replicate=replicate,
        thorough=replicate == 0,
        outcome=Outcome.FAIL if failed else Outcome.PASS,
        results=tuple(results),
        duration=1.2,
    )


def write_run(
    results: Path,
    maker: Maker,
    *,
    started_at: float,
    status: Status = "complete",
    absent: Callable[[str, str], bool] = lambda name, test_type: False,
) -> tuple[RunInfo, list[Sample]]:
    """Write one run's folder; ``absent`` says which implementation x test type failed verification."""
    folder = results / maker.run_id
    (folder / "logs").mkdir(parents=True, exist_ok=True)
    info = maker.info(started_at=started_at, status=status)
    (folder / "run.json").write_text(info.model_dump_json(indent=1), encoding="utf-8")
    samples: list[Sample] = []
    replicates: list[ReplicateRecord] = []
    clock = started_at
    for block in range(maker.blocks):
        for item in maker.implementations:
            clock += 2
            replicates.append(
                ReplicateRecord(
                    implementation=item.name,
                    block=block,
                    replicate=block,
                    started_at=clock,
                    first_answer=0.8,
                    status="ok",
                    log=f"logs/{safe(item.name)}/r{block}.log",
                )
            )
            for test_type in item.test_types:
                if absent(item.name, test_type):
                    continue
                for level in levels_of(test_type):
                    clock += maker.windows
                    samples.append(maker.sample(item.name, test_type, level, block, clock))
    write_lines(folder / "samples.jsonl", samples)
    write_lines(folder / "replicates.jsonl", replicates)
    for item in maker.implementations:
        write_logs(folder, item.name, maker.blocks)
        for test_type in item.test_types:
            target = folder / "verify" / safe(item.name) / f"{test_type}-r0.json"
            target.parent.mkdir(parents=True, exist_ok=True)
            record = verdict(item.name, test_type, 0, failed=absent(item.name, test_type))
            target.write_text(record.model_dump_json(), encoding="utf-8")
    (folder / "logs" / "harness.log").write_text("INFO start: wrk -t2 -c64 -d15s\n" * 20, encoding="utf-8")
    (folder / "ranking.json").write_text(ranking(info, samples).model_dump_json(), encoding="utf-8")
    return info, samples


def write_lines(path: Path, records: Sequence[Sample | ReplicateRecord]) -> None:
    """One record a line."""
    path.write_text("".join(record.model_dump_json() + "\n" for record in records), encoding="utf-8")


def write_logs(folder: Path, name: str, blocks: int) -> None:
    """A build log and one of each replicate."""
    logs = folder / "logs" / safe(name)
    logs.mkdir(parents=True, exist_ok=True)
    (logs / "build.log").write_text("$ build\n[INFO] BUILD SUCCESS\n", encoding="utf-8")
    for block in range(blocks):
        text = f"listening on 8080\n{name}: <b>replicate</b> {block}\n"
        (logs / f"r{block}.log").write_text(text, encoding="utf-8")


def safe(name: str) -> str:
    """A name as a folder."""
    return "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in name)[:80]


def small(results: Path, run_id: str = "20250615-small", *, seed: int = 7, started_at: float = EPOCH) -> None:
    """Four implementations x six test types x five blocks; express fails one verification."""
    maker = Maker(run_id, [implementation(row) for row in REAL], blocks=5, seed=seed)
    write_run(results, maker, started_at=started_at, absent=lambda name, test: (name, test) == ("es4x", "update"))


def large(results: Path, count: int = 500, run_id: str = "20250616-large") -> None:
    """``count`` implementations x 7 test types x 3 blocks at one level each, and no windows."""
    source = random.Random(11)
    languages = ["Java", "Go", "Rust", "C#", "JavaScript", "Python", "PHP", "Ruby", "Kotlin", "Scala", "C++", "Elixir"]
    rows = [
        (
            f"framework-{number:03d}",
            source.choice(languages),
            source.choice(["Netty", "Node.js", "Tokio", "Undertow", "None", "Puma"]),
            "None",
            source.choice(["Postgres", "MySQL", "MongoDB"]),
            source.choice(["Raw", "Micro", "Full"]),
            source.choice(["Micro", "Fullstack", "Platform"]),
            1.0,
        )
        for number in range(count)
    ]
    items = [implementation(row).model_copy(update={"test_types": tuple(BASE)}) for row in rows]
    maker = Maker(run_id, items, blocks=3, seed=11)
    maker.windows = 2
    write_run(results, maker, started_at=EPOCH + 86_400)


def hostile(results: Path, run_id: str = "20250617-hostile") -> None:
    """Names that are markup, values that are broken, files that are cut off; and three folders that are no runs."""
    items = [
        implementation((name, name, name, name, name, name, name, 1.0)).model_copy(
            update={"folder": "javascript:alert(3)", "notes": name, "display_name": name, "tags": (name,)}
        )
        for name in MARKUP
    ]
    maker = Maker(run_id, items, blocks=3, seed=3)
    info, _ = write_run(results, maker, started_at=EPOCH + 172_800)
    folder = results / run_id
    raw = info.model_dump(mode="json") | {"name": MARKUP[0], "environment": MARKUP[1], "seed": "not a number"}
    raw["machine"] = {"hostname": MARKUP[2]}
    (folder / "run.json").write_text(json.dumps(raw), encoding="utf-8")
    with (folder / "samples.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"not": "a sample"}\nthis is not JSON\n{"id": "cut o')
    broken = json.loads((folder / "ranking.json").read_text(encoding="utf-8"))
    headline = broken["test_types"]["json"]["headline"]["rows"]
    headline[0]["throughput"]["estimate"].update(median=float("inf"), low=None, high=float("nan"))
    headline[1]["throughput"]["estimate"].update(median=-5.0, low=-9e300, high=9e300)
    headline[2].update(rss_peak=None, first_answer=-1e-30, errors=-4, words=[*MARKUP])
    broken["notes"] = [*MARKUP]
    (folder / "ranking.json").write_text(json.dumps(broken), encoding="utf-8")
    (folder / "logs" / safe(MARKUP[0]) / "r0.log").write_text("\n".join(MARKUP), encoding="utf-8")
    for name, text in {"corrupt": '{"run_id": ', "empty": "", "list": "[]"}.items():
        (results / name).mkdir(parents=True, exist_ok=True)
        (results / name / "run.json").write_text(text, encoding="utf-8")


def techempower(path: Path) -> None:
    """A results.json with TechEmpower's keys."""
    levels = [16, 64, 256]

    def cell(rate: float) -> dict[str, object]:
        return {
            "latencyAvg": "1.20ms",
            "latencyMax": "40.10ms",
            "latencyStdev": "900.00us",
            "totalRequests": int(rate * 15),
            "startTime": 1_700_000_000,
            "endTime": 1_700_000_015,
        }

    names = {"gemini": 90_000.0, "undertow": 120_000.0, "flask": 9_000.0}
    document = {
        "uuid": "00000000-0000-4000-8000-000000000000",
        "name": "Round 99, invented",
        "environmentDescription": "invented",
        "startTime": 1_700_000_000_000,
        "completionTime": 1_700_003_600_000,
        "concurrencyLevels": levels,
        "pipelineConcurrencyLevels": [256, 1024, 4096],
        "queryIntervals": [1, 5, 10],
        "cachedQueryIntervals": [1, 10, 20],
        "frameworks": list(names),
        "duration": 15,
        "rawData": {
            "json": {name: [cell(rate * factor) for factor in (0.8, 1.0, 0.9)] for name, rate in names.items()},
            "db": {
                "gemini": [cell(20_000), cell(24_000), cell(22_000)],
                "flask": [{**cell(3_000), "5xx": 15_000}, {}, cell(2_000)],
            },
        },
        "completed": dict.fromkeys(names, "20250101000000"),
        "succeeded": {"json": list(names), "db": ["gemini", "flask"]},
        "failed": {"json": [], "db": ["undertow"]},
        "verify": {"undertow": {"json": "pass", "db": "fail"}, "flask": {"json": "pass", "db": "warn"}},
        "testMetadata": [
            {"name": "gemini", "framework": "gemini", "language": "Java", "platform": "Servlet", "database": "MySQL"},
            {"name": "undertow", "framework": "undertow", "language": "Java", "classification": "Platform"},
            {"name": "flask", "framework": "flask", "language": "Python", "orm": "Full", "classification": "Micro"},
        ],
    }
    path.write_text(json.dumps(document), encoding="utf-8")


def main() -> None:
    """Write the runs that are asked for, all but ``large`` by default."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path)
    parser.add_argument("runs", nargs="*", default=["small", "second", "hostile", "techempower"])
    arguments = parser.parse_args()
    results: Path = arguments.results
    results.mkdir(parents=True, exist_ok=True)
    makers: dict[str, Callable[[], None]] = {
        "small": lambda: small(results),
        "second": lambda: small(results, "20250622-second", seed=8, started_at=EPOCH + 604_800),
        "hostile": lambda: hostile(results),
        "large": lambda: large(results),
        "techempower": lambda: techempower(results / "techempower.json"),
    }
    for name in arguments.runs:
        makers[name]()


if __name__ == "__main__":
    main()
