"""Publishes a reduced copy of a run as the only run of a published round.

Usage: ``python -m harness.dashboard.example RUN [ROUND]``. ROUND is a number; the default is the newest round. The copy
contains all trials, so it has the same ranking as the original. It omits derived files (``ranking.json`` and
TechEmpower's file) and the data named in ``LEFT_OUT``. Absolute paths are reduced to their last component.
"""

import argparse
import json
import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness.dashboard.run_documents import DashboardRun
from harness.paths import RESULTS
from harness.records.record import Record
from harness.records.run_folders import ROUNDS, numbered_rounds
from harness.records.trial_record import Trial

LEFT_OUT = (
    "Logs, latency histograms, load generator commands, time series and passed checks are omitted. Percentiles are "
    "included.",
)

# An absolute path with at least two components. The group captures the last component. Web addresses, media types and
# relative paths do not match.
ABSOLUTE_PATH = re.compile(r"(?<![\w:/.*-])/(?:[\w.+@-]+/)+([\w.+@-]+)")
ADDRESS = re.compile(r"\bhttps?://([\w.-]+)")
THIS_MACHINE = frozenset({"127.0.0.1", "localhost"})
FREE_TEXT = frozenset({"notes", "maintainers"})  # fields of benchmark_config.json that may contain web addresses


def write_example(source: DashboardRun, target: Path) -> None:
    """Write the reduced copy to a new folder.

    Raises ValueError if a record contains a remote host's URL outside the fields in ``FREE_TEXT``.
    """
    target.mkdir(parents=True)
    unbuilt = tuple(
        each.model_copy(update={"build": each.build and each.build.model_copy(update={"log": None})})
        for each in source.info.implementations
    )
    info = source.info.model_copy(update={"left_out": LEFT_OUT, "implementations": unbuilt})
    _add(info, target / "run.json", exclude_defaults=False)
    for trial in source.trials():
        validity = tuple(check for check in trial.validity if check.outcome != "pass")
        smaller = trial.without_histograms().model_copy(update={"validity": validity})
        _add(smaller, target / "trials.jsonl", exclude={"command": True, "windows": True, "warm_up": {"windows"}})
    for process in source.processes():
        _add(process.model_copy(update={"log": None}), target / "processes.jsonl")
    for verdict in source.verdicts():
        results = tuple(result for result in verdict.results if result.outcome != "pass")
        _add(verdict.model_copy(update={"results": results}), target / "verdicts.jsonl")


def _add(record: Record, path: Path, **options: Any) -> None:  # noqa: ANN401 - pydantic's own options
    """Append a record to a file, with absolute paths reduced to their last component."""
    document = record.model_dump(mode="json", by_alias=True, **{"exclude_defaults": True, **options})
    if isinstance(record, Trial):
        # Keep ``load.kind``, which exclude_defaults would omit.
        document["load"] = record.load.model_dump(mode="json", exclude_none=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(remove_paths(document), separators=(",", ":"), ensure_ascii=False) + "\n")


def remove_paths(value: Any, key: str = "") -> Any:  # noqa: ANN401 - any JSON value
    """Reduce absolute paths in a JSON value to their last component.

    Raises ValueError for a remote host's URL outside the fields in ``FREE_TEXT``. ``key`` is the value's field name.
    """
    match value:
        case str():
            others = set(ADDRESS.findall(value)) - THIS_MACHINE
            if others and key not in FREE_TEXT:
                raise ValueError(
                    f"{key} names the host {', '.join(sorted(others))}, which must not be published; remove the name"
                )
            return ABSOLUTE_PATH.sub(r"\1", value)
        case dict():
            return {name: remove_paths(item, name) for name, item in value.items()}
        case list():
            return [remove_paths(item, key) for item in value]
        case _:
            return value


def main(argv: Sequence[str] | None = None) -> int:
    """Write the copy of a run, and remove other runs from the round."""
    parser = argparse.ArgumentParser(prog="python -m harness.dashboard.example", description=__doc__)
    parser.add_argument("run", type=Path, metavar="RUN", help="folder of the run")
    parser.add_argument("round", type=int, nargs="?", metavar="ROUND", help="number of the round; default: the newest")
    options = parser.parse_args(argv)
    rounds = RESULTS / ROUNDS
    newest = [int(folder.name) for folder in numbered_rounds(rounds)][-1:] or [1]
    run, folder = DashboardRun(options.run.resolve()), rounds / str(options.round or newest[0])
    write_example(run, folder / run.id)
    for other in folder.iterdir():
        if other.is_dir() and other.name != run.id:
            shutil.rmtree(other)
    return 0


if __name__ == "__main__":
    sys.exit(main())
