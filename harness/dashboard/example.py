"""``python -m harness.dashboard.example RUN``: a run small enough to ship with the project, as its example.

Every figure and every sample stays, so that it ranks as the run that it was made of. What is derived (``ranking.json``,
TechEmpower's file), logs and latency histograms are left out, then, until it is small enough, what ``REDUCTIONS``
names; run.json says which of it was. Paths of the machine are cut to the names of their files.
"""

import argparse
import json
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from harness.dashboard.runs import EXAMPLES, Run
from harness.paths import RESULTS

MOST_BYTES = 300_000
ALWAYS = "Logs and latency histograms are left out; percentiles are there."
FURTHER = ("replicates.jsonl", "rates.jsonl", "capacities.jsonl", "orders.jsonl", "order_capacities.jsonl")

# An absolute path of two or more parts, not one within an address, a media type or a relative path; then its last part.
PATH = re.compile(r"(?<![\w:/.*-])/(?:[\w.+@-]+/)+([\w.+@-]+)")
ADDRESS = re.compile(r"\bhttps?://([\w.-]+)")
THIS_MACHINE = frozenset({"127.0.0.1", "localhost"})
FREE_TEXT = frozenset({"notes", "maintainers"})  # of benchmark_config.json, where an address is the author's own

Document = dict[str, Any]  # a record of a run as JSON


@dataclass(frozen=True, kw_only=True)
class Reduction:
    """What to leave out of each sample and verdict while the example is too large, and the sentence that says so."""

    says: str
    sample: Callable[[Document], None] = lambda sample: None
    verdict: Callable[[Document], None] = lambda verdict: None


def without_passed(key: str) -> Callable[[Document], None]:
    """Leaves out those that passed of a list of gates or checks."""

    def apply(record: Document) -> None:
        record[key] = [item for item in record.get(key, ()) if item["outcome"] != "pass"]

    return apply


def without(key: str, within: str | None = None) -> Callable[[Document], None]:
    """Leaves out one key of a record, or of an object within it."""

    def apply(record: Document) -> None:
        ((record.get(within) or {}) if within else record).pop(key, None)

    return apply


REDUCTIONS = (
    Reduction(says="Verification's checks that passed are left out.", verdict=without_passed("results")),
    Reduction(says="Validity checks that passed are left out.", sample=without_passed("gates")),
    Reduction(says="Commands of the load generator are left out.", sample=without("command")),
    Reduction(says="The seconds of warm-ups are left out.", sample=without("windows", "warm_up")),
    Reduction(says="The seconds of samples are left out.", sample=without("windows")),
)


def shrink(run: Path, target: Path, most: int = MOST_BYTES) -> int:
    """Write the example, in place of one of that name; returns its bytes.

    Raises StoreError for an unreadable run, ValueError for one that stays too large or names another host.
    """
    source = Run(run)
    with TemporaryDirectory(dir=target.parent if target.parent.is_dir() else None) as scratch:
        for steps in range(len(REDUCTIONS) + 1):
            part = Path(scratch) / str(steps)
            if (size := write(source, part, REDUCTIONS[:steps])) <= most:
                break
        else:
            raise ValueError(f"{target}: {size:,} bytes, more than {most:,}: take a run with fewer samples")
        shutil.rmtree(target, ignore_errors=True)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(part, target)
    return size


def write(source: Run, target: Path, reductions: tuple[Reduction, ...]) -> int:
    """Write an example without what these leave out into a new folder; returns its bytes."""
    target.mkdir(parents=True)
    info = source.info.model_dump(mode="json")
    info["left_out"] = [ALWAYS, *(reduction.says for reduction in reductions)]
    for implementation in info["implementations"]:
        without("log", "build")(implementation)
    _dump([info], target / "run.json")
    samples = [
        sample.without_histograms().model_dump(mode="json", exclude_defaults=True) for sample in source.samples()
    ]
    for sample in samples:
        for reduction in reductions:
            reduction.sample(sample)
    _dump(samples, target / "samples.jsonl")
    for name in FURTHER:
        if (source.folder / name).is_file():
            records = [json.loads(line) for line in (source.folder / name).read_text(encoding="utf-8").splitlines()]
            for record in records:
                without("log")(record)
            _dump(records, target / name)
    for verdict in source.verdicts():
        found = verdict.model_dump(mode="json", exclude_defaults=True)
        for reduction in reductions:
            reduction.verdict(found)
        name = f"{verdict.test_type}-r{verdict.replicate}.json"
        _dump([found], target / "verify" / verdict.implementation / name)
    return sum(path.stat().st_size for path in target.rglob("*") if path.is_file())


def _dump(records: list[Document], path: Path) -> None:
    """One record a line, free of this machine's paths. Raises ValueError where one names another host."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(public(record), separators=(",", ":"), ensure_ascii=False) for record in records]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def public(value: Any, key: str = "") -> Any:  # noqa: ANN401 - JSON, whatever it is
    """The same with absolute paths cut to their last part. Raises ValueError for an address of another machine."""
    match value:
        case str():
            others = set(ADDRESS.findall(value)) - THIS_MACHINE
            if others and key not in FREE_TEXT:
                raise ValueError(f"{key}: names {', '.join(sorted(others))}, which an example that ships must not")
            return PATH.sub(r"\1", value)
        case dict():
            return {name: public(item, name) for name, item in value.items()}
        case list():
            return [public(item, key) for item in value]
        case _:
            return value


def main() -> None:
    """Shrink one run; it becomes the only example."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="the run's folder; what it becomes is the only one of results/examples/")
    run = parser.parse_args().run.resolve()
    examples = RESULTS / EXAMPLES
    size = shrink(run, examples / run.name)
    for other in examples.iterdir():
        if other.is_dir() and other.name != run.name:
            shutil.rmtree(other)
            print(f"in place of {other.name}")
    print(f"{(examples / run.name).relative_to(RESULTS.parent)}: {size:,} bytes")


if __name__ == "__main__":
    main()
