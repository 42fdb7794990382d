"""``python -m harness.dashboard.example RUN TARGET``: a run small enough to ship with the project, as its example.

What only the drill-down shows is shortened: no latency histograms (their percentiles stay), logs to their last lines,
checks that passed by name alone. Every figure and sample stays.
"""

import argparse
import shutil
from pathlib import Path

from harness.dashboard.runs import Run
from harness.results.records import Outcome

MOST_BYTES = 300_000
LOG_BYTES = 600
KEPT = ("run.json", "replicates.jsonl")


def shrink(run: Path, target: Path) -> int:
    """Write the example; returns its bytes. Raises StoreError for an unreadable run, ValueError for one too large."""
    source = Run(run)
    target.mkdir(parents=True)
    for name in KEPT:
        shutil.copyfile(run / name, target / name)
    with (target / "samples.jsonl").open("w", encoding="utf-8") as file:
        for sample in source.samples():
            file.write(sample.without_histograms().model_dump_json() + "\n")
    (target / "ranking.json").write_text(source.ranking().model_dump_json() + "\n", encoding="utf-8")
    for verdict in source.verdicts():
        results = tuple(
            result
            if result.outcome is not Outcome.PASS
            else result.model_copy(update={"message": "", "expected": None, "actual": None})
            for result in verdict.results
        )
        path = target / "verify" / verdict.implementation / f"{verdict.test_type}-r{verdict.replicate}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(verdict.model_copy(update={"results": results}).model_dump_json() + "\n", encoding="utf-8")
    for name in source.logs():
        path = target / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes((run / name).read_bytes()[-LOG_BYTES:])
    size = sum(path.stat().st_size for path in target.rglob("*") if path.is_file())
    if size > MOST_BYTES:
        raise ValueError(f"{target}: {size:,} bytes, more than {MOST_BYTES:,}: take a run with fewer samples")
    return size


def main() -> None:
    """Shrink one run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("target", type=Path)
    arguments = parser.parse_args()
    print(f"{shrink(arguments.run, arguments.target):,} bytes")


if __name__ == "__main__":
    main()
