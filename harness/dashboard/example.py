"""``python -m harness.dashboard.example RUN``: a run small enough to ship with the project, as its published round.

Every figure and every trial stays, so that it ranks as the run that it was made of. What is derived
(``ranking.json``, TechEmpower's file) and what ``LEFT_OUT`` names is left out. Paths of the machine are cut to their
last parts.
"""

import argparse
import json
import re
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from harness.dashboard.runs import PUBLISHED, Run
from harness.paths import RESULTS
from harness.records.models import Record, RunInfo, Trial

MOST_BYTES = 3_000_000
LEFT_OUT = (
    "Logs, latency histograms, commands of the load generator, single seconds, gates and checks that passed are left "
    "out; percentiles are there.",
)

# An absolute path of two or more parts, not one within an address, a media type or a relative path; then its last part.
PATH = re.compile(r"(?<![\w:/.*-])/(?:[\w.+@-]+/)+([\w.+@-]+)")
ADDRESS = re.compile(r"\bhttps?://([\w.-]+)")
THIS_MACHINE = frozenset({"127.0.0.1", "localhost"})
FREE_TEXT = frozenset({"notes", "maintainers"})  # of benchmark_config.json, where an address is the author's own


def shrink(run: Path, target: Path, most: int = MOST_BYTES) -> int:
    """Write the example, in place of one of that name; returns its bytes.

    Raises StoreError for an unreadable run, ValueError for one that stays too large or names another host.
    """
    with TemporaryDirectory(dir=target.parent if target.parent.is_dir() else None) as scratch:
        part = Path(scratch) / "run"
        write(Run(run), part)
        size = sum(path.stat().st_size for path in part.iterdir())
        if size > most:
            raise ValueError(f"{target}: {size:,} bytes, more than {most:,}: take a run with fewer trials")
        shutil.rmtree(target, ignore_errors=True)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(part, target)
    return size


def write(source: Run, target: Path) -> None:
    """Write an example into a new folder."""
    target.mkdir(parents=True)
    unbuilt = tuple(
        each.model_copy(update={"build": each.build and each.build.model_copy(update={"log": None})})
        for each in source.info.implementations
    )
    info = source.info.model_copy(update={"left_out": LEFT_OUT, "implementations": unbuilt})
    _add(info, target / "run.json")
    for trial in source.trials():
        gates = tuple(each for each in trial.gates if each.outcome != "pass")
        smaller = trial.without_histograms().model_copy(update={"gates": gates})
        _add(smaller, target / "trials.jsonl", {"command": True, "windows": True, "warm_up": {"windows"}})
    for process in source.processes():
        _add(process.model_copy(update={"log": None}), target / "processes.jsonl")
    for verdict in source.verdicts():
        results = tuple(each for each in verdict.results if each.outcome != "pass")
        _add(verdict.model_copy(update={"results": results}), target / "verdicts.jsonl")


def _add(record: Record, path: Path, excluded: dict[str, Any] | None = None) -> None:
    """Append a line, free of this machine's paths. Raises ValueError where one names another host."""
    lines = not isinstance(record, RunInfo)
    whole = record.model_dump(mode="json", by_alias=True, exclude_defaults=lines, exclude=excluded)
    if isinstance(record, Trial):
        whole["load"] = record.load.model_dump(mode="json", exclude_none=True)  # its kind is a default, and is needed
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(public(whole), separators=(",", ":"), ensure_ascii=False) + "\n")


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
    """Shrink one run; it becomes the published one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="the run's folder; what it becomes is the only one of results/rounds/1/")
    run = parser.parse_args().run.resolve()
    published = RESULTS / PUBLISHED
    size = shrink(run, published / run.name)
    for other in published.iterdir():
        if other.is_dir() and other.name != run.name:
            shutil.rmtree(other)
            print(f"in place of {other.name}")
    print(f"{(published / run.name).relative_to(RESULTS.parent)}: {size:,} bytes")


if __name__ == "__main__":
    main()
