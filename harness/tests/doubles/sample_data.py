"""``python -m harness.tests.doubles.sample_data FOLDER``: deterministic runs to look at and to test with.

``small`` is what a good run of four implementations looks like, ``second`` the same a week later, ``hostile`` is full
of markup and broken values, ``large`` holds 500 implementations x 7 test types, ``orders`` is of the
order service. The trials are invented and nothing here is a measurement; they are ranked as those of any run.
"""

import argparse
import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path

from harness.records.models import ProcessRecord, Record, RunInfo, RunRecords, Trial
from harness.stats.ranking import rank
from harness.tests.doubles import invented, order_data
from harness.tests.doubles.invented import EPOCH, MARKUP, Maker, implementation, safe
from harness.tests.records import process


def write_run(
    results: Path, maker: Maker, *, started_at: float,
    absent: Callable[[str, str], bool] = lambda name, test_type: False,
) -> RunInfo:  # fmt: skip
    """Write one run's folder; ``absent`` says which implementation x test type failed verification."""
    trials: list[Trial] = []
    processes: list[ProcessRecord] = []
    clock = started_at
    for number in range(maker.processes):
        for item in maker.implementations:
            clock += 2
            for round_ in range(maker.rounds):
                for test_type in item.test_types:
                    if absent(item.name, test_type):
                        continue
                    for load in invented.loads_of(test_type):
                        clock += maker.windows
                        trials.append(maker.trial(item.name, test_type, load, number, clock, round_=round_))
                    if maker.rounds > 1 and number == round_ == 0:
                        trials.append(maker.witness(trials[-1]))
            startup, log = 0.2 + 0.6 / maker.speed(item.name), f"logs/{safe(item.name)}/p{number}.log"
            own = {"started_at": clock, "startup_time": startup, "log": log}
            processes.append(process(item.name, number).model_copy(update=own))
    verdicts = [
        invented.verdict(item.name, test_type, failed=absent(item.name, test_type))
        for item in maker.implementations
        for test_type in item.test_types
    ]
    info = maker.info(started_at=started_at)
    records = RunRecords(info=info, trials=trials, processes=processes, verdicts=verdicts)
    folder = results / maker.run_id
    write_records(folder, records)
    for item in maker.implementations:
        write_logs(folder, item.name, maker.processes)
    (folder / "logs" / "harness.log").write_text("INFO start: loadgen --connections 64\n" * 20, encoding="utf-8")
    return info


def write_records(folder: Path, records: RunRecords) -> None:
    """All files of a run, ranked."""
    (folder / "logs").mkdir(parents=True, exist_ok=True)
    (folder / "run.json").write_text(records.info.recorded(indent=1), encoding="utf-8")
    lines: dict[str, Sequence[Record]] = {
        "trials": records.trials, "processes": records.processes, "verdicts": records.verdicts
    }  # fmt: skip
    for name, found in lines.items():
        text = "".join(record.recorded() + "\n" for record in found)
        (folder / f"{name}.jsonl").write_text(text, encoding="utf-8")
    ranking = rank(records.info, records.trials, records.processes, records.verdicts)
    noted = ranking.model_copy(update={"notes": (*ranking.notes, "Figures are invented to show the page.")})
    (folder / "ranking.json").write_text(noted.recorded(), encoding="utf-8")


def write_logs(folder: Path, name: str, processes: int) -> None:
    """A build log and one of each process."""
    logs = folder / "logs" / safe(name)
    logs.mkdir(parents=True, exist_ok=True)
    (logs / "build.log").write_text("$ build\n[INFO] BUILD SUCCESS\n", encoding="utf-8")
    for number in range(processes):
        text = f"listening on 8080\n{name}: <b>process</b> {number}\n"
        (logs / f"p{number}.log").write_text(text, encoding="utf-8")


def small(results: Path, run_id: str = "20250615-small", *, seed: int = 7, started_at: float = EPOCH) -> None:
    """Four implementations x six test types x three processes x two rounds; es4x fails one verification."""
    maker = Maker(run_id, [implementation(row) for row in invented.REAL], processes=3, rounds=2, seed=seed)
    write_run(results, maker, started_at=started_at, absent=lambda name, test: (name, test) == ("es4x", "update"))


def large(results: Path, count: int = 500, run_id: str = "20250616-large") -> None:
    """``count`` implementations x 7 test types x 3 processes, with few windows."""
    chosen = random.Random(11).choice
    columns = (
        ["Java", "Go", "Rust", "C#", "JavaScript", "Python", "PHP", "Ruby", "Kotlin", "Scala", "C++", "Elixir"],
        ["Netty", "Node.js", "Tokio", "Undertow", "None", "Puma"],
        ["Postgres", "MySQL", "MongoDB"],
        ["Raw", "Micro", "Full"],
        ["Micro", "Fullstack", "Platform"],
    )
    everything = {"test_types": tuple(invented.BASE)}
    items = []
    for number in range(count):
        language, platform, *others = (chosen(column) for column in columns)
        row = (f"framework-{number:03d}", language, platform, "None", others[0], others[1], others[2], 1.0)
        items.append(implementation(row).model_copy(update=everything))
    maker = Maker(run_id, items, processes=3, seed=11)
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
    maker = Maker(run_id, items, processes=3, seed=3)
    info = write_run(results, maker, started_at=EPOCH + 172_800)
    folder = results / run_id
    raw = json.loads(info.recorded()) | {"name": MARKUP[0], "environment": MARKUP[1]}
    raw["machine"]["hostname"] = MARKUP[2]
    (folder / "run.json").write_text(json.dumps(raw), encoding="utf-8")
    with (folder / "trials.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"not": "a trial"}\nthis is not JSON\n{"id": "cut o')
    broken = json.loads((folder / "ranking.json").read_text(encoding="utf-8"))
    headline = broken["test_types"]["json"]["headline"]["rows"]
    headline[0]["requests_per_second"]["estimate"].update(median=float("inf"), low=None, high=float("nan"))
    headline[1]["requests_per_second"]["estimate"].update(median=-5.0, low=-9e300, high=9e300)
    headline[2].update(rss_peak_bytes=None, startup_time_seconds=-1e-30, errors=-4, flags=[*MARKUP])
    broken["notes"] = [*MARKUP]
    (folder / "ranking.json").write_text(json.dumps(broken), encoding="utf-8")
    (folder / "logs" / safe(MARKUP[0]) / "p0.log").write_text("\n".join(MARKUP), encoding="utf-8")
    for name, text in {"corrupt": '{"run_id": ', "empty": "", "list": "[]"}.items():
        (results / name).mkdir(parents=True, exist_ok=True)
        (results / name / "run.json").write_text(text, encoding="utf-8")


def techempower(path: Path) -> None:
    """A results.json with TechEmpower's keys."""

    def cell(rate: float) -> dict[str, object]:
        latency = {"latencyAvg": "1.20ms", "latencyMax": "40.10ms", "latencyStdev": "900.00us"}
        times = {"startTime": 1_700_000_000, "endTime": 1_700_000_015}
        return {**latency, "totalRequests": int(rate * 15), **times}

    names = {"gemini": 90_000.0, "undertow": 120_000.0, "flask": 9_000.0}
    document = {
        "uuid": "00000000-0000-4000-8000-000000000000", "name": "Round 99, invented",
        "environmentDescription": "invented", "frameworks": list(names), "duration": 15,
        "startTime": 1_700_000_000_000, "completionTime": 1_700_003_600_000,
        "concurrencyLevels": [16, 64, 256], "pipelineConcurrencyLevels": [256, 1024, 4096],
        "queryIntervals": [1, 5, 10], "cachedQueryIntervals": [1, 10, 20],
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
    }  # fmt: skip
    path.write_text(json.dumps(document), encoding="utf-8")


def main() -> None:
    """Write the runs that are asked for, the first few by default."""
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
        "long": lambda: large(results, 120, "20250618-long"),
        "orders": lambda: write_records(
            results / "20250629-orders", order_data.run("20250629-orders", started_at=EPOCH + 1_209_600)
        ),
        "techempower": lambda: techempower(results / "techempower.json"),
    }
    for name in arguments.runs:
        makers[name]()


if __name__ == "__main__":
    main()
