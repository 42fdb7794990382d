"""Finds contradictions between records: pairs of implementations that two records rank in opposite order.

Usage: ``python -m harness.studies.consistency [RUN…]``. The records are the published runs and claim verdicts in
results/rounds, the table in docs/techempower.md, and the given runs. Two records contradict each other if the interval
of the same ratio is above 1 in one record and below 1 in the other. A contradiction is explained if the records differ
in network path, runtime, server CPUs or load. The exit code is 1 if any contradiction is unexplained.
"""

import argparse
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from harness.paths import REPOSITORY, RESULTS
from harness.records import store
from harness.records.claims import read_claims
from harness.stats.cell_values import METRICS, collect_cells, group_by_test_type
from harness.stats.moderation import CONFIDENCE
from harness.stats.value_tables import ValueTables

ROUNDS = RESULTS / "rounds"
TECHEMPOWER_PAGE = REPOSITORY / "docs" / "techempower.md"
RUN_METRICS = ("throughput", "cpu-per-request")
_RATIO = re.compile(r"\**([\d.]+)\** \[([\d.]+), ([\d.]+)\]")


@dataclass(frozen=True, kw_only=True)
class RecordedRatio:
    """A recorded ratio of two implementations, with the confidence interval."""

    record: str
    conditions: Mapping[str, str]  # condition -> value; the load is also a condition
    metric: str
    test_type: str
    of: str  # implementation in the numerator
    to: str  # implementation in the denominator
    low: float
    high: float

    def ordered(self) -> "RecordedRatio":
        """Return the ratio, inverted if the names are not in alphabetical order."""
        if self.of < self.to:
            return self
        values = vars(self) | {"of": self.to, "to": self.of, "low": 1 / self.high, "high": 1 / self.low}
        return RecordedRatio(**values)

    def describe(self) -> str:
        """Format the record, the interval and the conditions for a message."""
        return f"{self.record} [{self.low:.3g}, {self.high:.3g}] ({', '.join(self.conditions.values())})"


def ratios_of_run(folder: Path) -> Iterator[RecordedRatio]:
    """Yield a run's ratios: for each metric, test type and load, the ratio of each pair of implementations."""
    records = store.read_run(folder)
    cells = collect_cells(records.trials)
    for metric in RUN_METRICS:
        tables = ValueTables.of(cells, METRICS[metric])
        for test_type, measured in group_by_test_type(cells).items():
            for load in {load for own in measured.values() for load in own}:
                names = sorted(name for name, own in measured.items() if load in own and own[load].valid)
                for of, to in combinations(names, 2):
                    ratio = tables.ratio(of, to, CONFIDENCE, (test_type, load))
                    if ratio and ratio.low is not None and ratio.high is not None:
                        yield RecordedRatio(
                            record=f"run {records.info.run_id}", metric=metric, test_type=test_type, of=of, to=to,
                            conditions={**records.info.conditions, "load": load.label}, low=ratio.low, high=ratio.high,
                        )  # fmt: skip


def ratios_of_claims(results: Path) -> Iterator[RecordedRatio]:
    """Yield the ratio of each recorded claim statement that compares two implementations at the same load.

    Claims are measured over loopback.
    """
    for name, verdict in read_claims(results).verdicts.items():
        conditions = {"network path": "loopback", "runtime": verdict.runtime, "server CPUs": f"all {verdict.cpus}"}
        for statement in verdict.statements:
            (of, *cell), (to, *other) = statement.of.split(" "), statement.to.split(" ")
            if len(cell) > 1 and cell == other and of != to and statement.low and statement.high:
                yield RecordedRatio(
                    record=f"claim {name}", metric=statement.metric, test_type=cell[0], of=of, to=to,
                    conditions={**conditions, "load": " ".join(cell[1:])}, low=statement.low, high=statement.high,
                )  # fmt: skip


def ratios_of_page(path: Path) -> Iterator[RecordedRatio]:
    """Yield the CPU-per-request ratios in docs/techempower.md that compare two of this project's implementations."""
    columns: list[str] = []
    conditions = {"network path": "Docker bridge", "runtime": "docker", "server CPUs": "all 2", "load": "c64"}
    for line in path.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        columns = cells if line.startswith("| | ") else columns
        names = re.fullmatch(r"([\w-]+) ÷ ([\w-]+)", cells[0])
        for column, cell in zip(columns[1:], cells[1:], strict=False) if names else ():
            if match := _RATIO.fullmatch(cell):
                yield RecordedRatio(
                    record=path.name, metric="cpu-per-request", test_type=column, conditions=conditions,
                    of=names[1] if names else "", to=names[2] if names else "",
                    low=float(match[2]), high=float(match[3]),
                )  # fmt: skip


def contradictions(ratios: Sequence[RecordedRatio]) -> Iterator[tuple[RecordedRatio, RecordedRatio, list[str]]]:
    """Yield (ratio, ratio, differing conditions) for each pair of contradictory ratios.

    Two ratios from different records contradict each other if their intervals lie on opposite sides of 1.
    """
    groups: defaultdict[tuple[str, ...], list[RecordedRatio]] = defaultdict(list)
    for ratio in ratios:
        one = ratio.ordered()
        if one.low > 1 or one.high < 1:
            groups[one.metric, one.test_type, one.of, one.to].append(one)
    for group in groups.values():
        for a, b in combinations(group, 2):
            if a.record != b.record and (a.low > 1) != (b.low > 1):
                yield a, b, [name for name, value in a.conditions.items() if value != b.conditions[name]]


def main(argv: Sequence[str] | None = None) -> int:
    """Print all contradictions. Return 1 if any of them is unexplained."""
    parser = argparse.ArgumentParser(prog="python -m harness.studies.consistency", description=__doc__)
    parser.add_argument("runs", nargs="*", type=Path, metavar="RUN", help="additional run folders")
    options = parser.parse_args(argv)
    ratios = [*ratios_of_page(TECHEMPOWER_PAGE)]
    for results in sorted(ROUNDS.iterdir()):
        ratios += ratios_of_claims(results)
    for folder in (*sorted(path.parent for path in ROUNDS.glob("*/*/run.json")), *options.runs):
        ratios += ratios_of_run(folder)
    contradicting = list(contradictions(ratios))
    for a, b, differences in sorted(contradicting, key=lambda each: bool(each[2])):
        reason = f"explained by differences in {' and '.join(differences)}" if differences else "UNEXPLAINED"
        print(f"{a.test_type}, {a.metric}, {a.of} ÷ {a.to}: {a.describe()} and {b.describe()}: {reason}")
    unexplained = sum(not differences for *_, differences in contradicting)
    print(
        f"{len(ratios)} ratios; contradictions: {unexplained} unexplained, {len(contradicting) - unexplained} explained"
    )
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
