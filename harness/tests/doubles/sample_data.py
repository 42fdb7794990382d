"""Writes deterministic synthetic runs for the dashboard and its tests.

Start it with ``python -m harness.tests.doubles.sample_data FOLDER``. ``small`` is a valid run of four implementations,
and ``second`` is the same run a week later. ``hostile`` contains markup and broken values. ``large`` has 500
implementations x 7 test types. ``orders`` is a run of the order service. All runs are ranked like real runs.
"""

import argparse
import json
import random
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

from harness.plan.profile import ProcessLimits
from harness.plan.testtypes.registry import TEST_TYPES
from harness.records.loads import Scenario
from harness.records.measurements import Arrivals, ErrorCounts, Latency, LatencyGoal, OperationTimes, UseCaseTimes
from harness.records.record import Record
from harness.records.run_records import RunRecords
from harness.records.trial_record import Purpose, Trial
from harness.report.techempower import document
from harness.stats.ranking import rank
from harness.tests.doubles import invented, runs
from harness.tests.doubles.invented import EPOCH, MARKUP, SIX, copied, finished, implementation, safe, simulated
from harness.tests.doubles.records import process as process_of

FAILING = {("es4x", "update")}
GOAL = LatencyGoal(percentile=99.0, seconds=0.1)  # latency goal of the order service
FACTORS = (1.0, 32.0)
CAPACITY = 120.0  # the first implementation meets the goal up to this factor

ORDER_USE_CASES = (
    TEST_TYPES["order"].use_cases if "order" in TEST_TYPES else ()
)  # empty if harness/extras/orders has been removed


def write_records(folder: Path, records: RunRecords) -> None:
    """Write all files of a run, including its ranking and the logs of its builds and processes."""
    lines: dict[str, Sequence[Record]] = {
        "trials": records.trials, "processes": records.processes, "verdicts": records.verdicts
    }  # fmt: skip
    files = {f"{name}.jsonl": "".join(f"{record.to_json()}\n" for record in parts) for name, parts in lines.items()}
    files["run.json"] = records.info.to_json(indent=1)
    ranking = rank(records.info, records.trials, records.processes, records.verdicts)
    noted = ranking.model_copy(update={"notes": (*ranking.notes, "Figures are invented to show the page.")})
    files["ranking.json"] = noted.to_json()
    files["logs/harness.log"] = "INFO start: loadgen --connections 64\n" * 20
    for item in records.info.implementations:
        files[f"logs/{safe(item.name)}/build.log"] = "$ build\n[INFO] BUILD SUCCESS\n"
    for record in records.processes:
        if record.log:
            files[record.log] = f"listening on 8080\n{record.implementation}: <b>process</b> {record.process}\n"
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


@cache
def four() -> RunRecords:
    """Return a run of 4 implementations x 6 test types x 3 processes x 2 rounds. es4x fails one verification."""
    return simulated(invented.SPEEDS, failing=FAILING)


def small(results: Path, run_id: str = "20250615-small", *, started_at: float = EPOCH) -> None:
    """Write a valid run of four implementations."""
    items = [implementation(row) for row in invented.REAL]
    write_records(results / run_id, finished(four(), run_id, items, started_at=started_at, failing=FAILING))


def second(results: Path) -> None:
    """Write the run ``small`` with dates a week later."""
    small(results, "20250622-second", started_at=EPOCH + 604_800)


def large(results: Path, count: int = 500, run_id: str = "20250616-large") -> None:
    """Write a run of ``count`` implementations x 7 test types x 3 processes with two windows per trial."""
    dice = random.Random(11)
    columns = (
        ["Java", "Go", "Rust", "C#", "JavaScript", "Python", "PHP", "Ruby", "Kotlin", "Scala", "C++", "Elixir"],
        ["Netty", "Node.js", "Tokio", "Undertow", "None", "Puma"],
        ["None"],
        ["Postgres", "MySQL", "MongoDB"],
        ["Raw", "Micro", "Full"],
        ["Micro", "Fullstack", "Platform"],
    )
    names = [f"framework-{number:03d}" for number in range(count)]
    items = [implementation((name, *map(dice.choice, columns))) for name in names]
    one = simulated({"one": 1.0}, (*SIX, "cached-query"), rounds=1)
    found = copied(one, {name: dice.lognormvariate(-0.3, 0.7) for name in names})
    write_records(results / run_id, finished(found, run_id, items, started_at=EPOCH + 86_400))


def hostile(results: Path, run_id: str = "20250617-hostile") -> None:
    """Write a run with markup in names, broken values and truncated files. Add three folders that are not runs."""
    items = [
        implementation((name,) * 7).model_copy(
            update={"folder": "javascript:alert(3)", "notes": name, "display_name": name, "tags": (name,)}
        )
        for name in MARKUP
    ]
    found = copied(simulated({"one": 1.0}), {name: 1 / place for place, name in enumerate(MARKUP, 1)})
    whole = finished(found, run_id, items, started_at=EPOCH + 172_800)
    write_records(results / run_id, whole)
    folder = results / run_id
    raw = json.loads(whole.info.to_json()) | {"name": MARKUP[0], "environment": MARKUP[1]}
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


def order_latency(median: float) -> Latency:
    """Return the latencies of about a thousand responses. The maximum is three times the median."""
    return Latency(
        basis="open-loop, intended send time",
        mean=median,
        stdev=0.0,
        min=median,
        max=3 * median,
        percentiles={"50": median, "90": 2 * median, "99": 3 * median},
        histogram=((median, 600), (2 * median, 350), (3 * median, 48)),
    )


def order_trial(name: str, process: int, factor: float, median: float, *, purpose: Purpose = "measure") -> Trial:
    """Return a trial with a thousand arrivals of each use case, of which two fail.

    The median arrival takes twice as long as the median operation.
    """
    operation_latency, arrival_latency = order_latency(median), order_latency(2 * median)
    operations = tuple(
        OperationTimes(
            use_case=case.name, operation=done, due=1000, answered=998, errors=ErrorCounts(), latency=operation_latency
        )
        for case in ORDER_USE_CASES
        for done in dict.fromkeys(step.operation for step in case.steps)
    )
    use_cases = tuple(
        UseCaseTimes(use_case=case.name, due=1000, done=998, latency=arrival_latency) for case in ORDER_USE_CASES
    )
    load = Scenario(connections=64, factor=factor)
    result = runs.trial(name, 4990 / 8.0, process, test_type="order", load=load, cpu_per_request=median / 2)
    fields = {
        "purpose": purpose,
        "duration": 8.0,
        "asked_duration": 8.0,
        "requests": 998 * len(operations),
        "latency": operation_latency,
        "due": 1000 * len(operations),
        "answered": 998 * len(operations),
        "unfinished": 0,
        "arrivals": Arrivals(due=5000, done=4990, failed=10, unfinished=0, operations=operations, use_cases=use_cases),
        "database_cpu_seconds": 5000 * median / 4,
    }
    return result.model_copy(update=fields)


def orders(results: Path, processes: int = 4) -> None:
    """Write a run of four implementations at two factors.

    In the first process, the search finds no upper limit for one implementation.
    """
    drawn = random.Random(3)
    items = [implementation(row) for row in invented.REAL]
    rules = ProcessLimits(minimum=processes, maximum=processes)
    loads = tuple(Scenario(connections=64, factor=factor) for factor in FACTORS)
    info = runs.run_info([item.name for item in items], rules, loads={"order": loads})
    profile = {"processes": rules.model_dump(), "orders": {"factors": FACTORS, "goal": GOAL.model_dump()}}
    trials: list[Trial] = []
    for process in range(processes):
        for position, item in enumerate(items):
            for factor in FACTORS:
                median = (1 + position) * factor**0.2 * drawn.gauss(0.002, 0.00004)
                trials.append(order_trial(item.name, process, factor, median))
            capacity = CAPACITY / (1 + position) + process
            tried = [
                (capacity, 0.01),
                (1.04 * capacity, 2 * GOAL.seconds),
            ]  # the goal is met at the capacity and missed just above it
            for factor, median in tried if position < 3 or process else tried[:1]:
                trials.append(order_trial(item.name, process, factor, median, purpose="search"))
    started = [process_of(item.name, process) for process in range(processes) for item in items]
    made = RunRecords(info=info.model_copy(update={"settings": {"profile": profile}}), trials=trials, processes=started)
    whole = finished(made, "20250629-orders", items, started_at=EPOCH + 1_209_600)
    write_records(results / whole.info.run_id, whole)


def techempower(path: Path) -> None:
    """Write a results.json with TechEmpower's keys and one process per implementation."""
    speeds = {"gemini": 1.4, "undertow": 1.9, "flask": 0.15}
    items = [implementation((name, "Java", "None", "None", "MySQL", "Raw", "Micro")) for name in speeds]
    one = simulated({"one": 1.0}, ("json", "db"), processes=1)
    found = document(finished(copied(one, speeds), "techempower", items, started_at=EPOCH))
    path.write_text(json.dumps(found | {"name": "Round 99, invented"}), encoding="utf-8")


def scores(path: Path) -> None:
    """Write the rankings of a run and of a subset of its test types, for tests of the page's arithmetic."""
    chosen = ("json", "fortune")
    items = [implementation(row) for row in invented.REAL]
    whole = finished(simulated(invented.SPEEDS, processes=4, failing=FAILING), "fixture", items, started_at=0.0)
    ranking = rank(whole.info, whole.trials, [], [])
    some = whole.info.model_copy(update={"loads": {kind: whole.info.loads[kind] for kind in chosen}})
    subset = rank(some, [trial for trial in whole.trials if trial.test_type in chosen], [], [])
    headlines = {kind: test.model_copy(update={"tables": ()}) for kind, test in ranking.test_types.items()}
    scores_by_name = {
        "ranking": ranking.model_copy(update={"test_types": headlines}).model_dump(mode="json"),
        "subset": {"test_types": chosen, "scores": [score.model_dump(mode="json") for score in subset.overall]},
    }
    path.write_text(json.dumps(scores_by_name, indent=1) + "\n", encoding="utf-8")


def main() -> None:
    """Write the runs that are named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path)
    parser.add_argument("runs", nargs="*", default=["small", "second", "hostile", "techempower"])
    arguments = parser.parse_args()
    results: Path = arguments.results
    results.mkdir(parents=True, exist_ok=True)
    makers: dict[str, Callable[[], None]] = {
        "small": lambda: small(results),
        "second": lambda: second(results),
        "hostile": lambda: hostile(results),
        "large": lambda: large(results),
        "long": lambda: large(results, 120, "20250618-long"),
        "orders": lambda: orders(results),
        "techempower": lambda: techempower(results / "techempower.json"),
        "scores": lambda: scores(results / "scores.json"),
    }
    for name in arguments.runs:
        makers[name]()


if __name__ == "__main__":
    main()
