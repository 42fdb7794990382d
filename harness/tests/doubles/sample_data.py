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

from harness.records.models import Record, RunInfo, RunRecords
from harness.report.techempower import document
from harness.stats.ranking import rank
from harness.tests.doubles import invented, order_data
from harness.tests.doubles.invented import EPOCH, MARKUP, Cells, Maker, implementation, safe
from harness.tests.records import process


def write_run(results: Path, maker: Maker, *, started_at: float, absent: Cells = ()) -> RunInfo:
    """Write one run's folder; ``absent`` are the cells that failed verification."""
    trials = maker.trials(absent)
    processes = [
        process(item.name, number).model_copy(
            update={"startup_time": 0.2 + 0.6 / maker.speed(item.name), "log": f"logs/{safe(item.name)}/p{number}.log"}
        )
        for number in range(maker.processes)
        for item in maker.implementations
    ]
    verdicts = [
        invented.verdict(item.name, test_type, failed=(item.name, test_type) in absent)
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
    write_run(results, maker, started_at=started_at, absent={("es4x", "update")})


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
    maker = Maker(run_id, items, processes=3, seed=11, windows=2)
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
    """A results.json with TechEmpower's keys, of one process of each."""
    speeds = {"gemini": 1.4, "undertow": 1.9, "flask": 0.15}
    items = [implementation((name, "Java", "None", "None", "MySQL", "Raw", "Micro", 1.0)) for name in speeds]
    maker = Maker("techempower", items, processes=1, seed=5, speeds=speeds)
    info = maker.info(started_at=EPOCH).model_copy(update={"name": "Round 99, invented"})
    path.write_text(json.dumps(document(RunRecords(info=info, trials=maker.trials()))), encoding="utf-8")


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
