"""``./tfb merge RUN… --output RUN``: several runs, of one set of machines or of many, ranked as one."""

import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from harness.cli.arguments import Parser
from harness.cli.settings import results_folder
from harness.errors import Exit, UsageError
from harness.records import merging, store
from harness.records.merging import MergedRun
from harness.records.store import RunStore
from harness.report import techempower, terminal
from harness.stats.whole import rank_whole


def main(argv: Sequence[str]) -> int:
    """Merge, rank and write; exit code 1 when something of a run could not be read."""
    p = Parser(
        prog="./tfb merge",
        description="Rank several runs as one. Within a set of machines blocks are compared as ever; across sets only "
        "ratios to the shared reference are (docs/method.md).",
    )
    p.add_argument("runs", nargs="+", metavar="RUN", help="run ids, run folders, or the folder of a queue")
    p.add_argument(
        "--output", required=True, metavar="RUN", help="the new run: a name in the results folder, or a path"
    )
    p.add_argument("--reference", metavar="NAME", help="implementation that ratios are to; default: the runs' own")
    p.add_argument("--results", metavar="DIR", help="another results folder")
    p.add_argument("--quiet", action="store_true", help="write the files, print no table")
    options = p.parse_args(list(argv))
    results = results_folder(options.results)
    folders = [folder for word in options.runs for folder in _runs(results, word)]
    output = Path(options.output) if "/" in options.output else results / options.output
    if output.exists():
        raise UsageError(f"--output {output}: already there; choose another name")
    records = merging.merge(
        list(dict.fromkeys(folders)), output.name, reference=options.reference, started_at=time.time()
    )
    written = write(records, output)
    ranking, _ = rank_whole(output, records.info, records.samples, records.replicates, records.verdicts)
    written.write_text("ranking.json", ranking.recorded())
    written.write_text("results.json", json.dumps(techempower.document(records, ranking), indent=1))
    if not options.quiet:
        terminal.show(records.info, ranking, terminal.console())
        print(f"\nFiles: {output}/   again: ./tfb report {output}")
    for problem in records.problems:
        print(f"tfb: {problem}", file=sys.stderr)
    return Exit.FAILED if records.problems else Exit.OK


def _runs(results: Path, word: str) -> list[Path]:
    folder = next((path for path in (Path(word), results / word) if path.is_dir()), None)
    return list(merging.runs_below(folder)) if folder else [store.find(results, word)]


def write(records: MergedRun, folder: Path) -> RunStore:
    """The merged run as a folder like any other. Raises StoreError."""
    written = RunStore(folder, started_at=records.info.started_at)
    written.write_text("samples.jsonl", "\n".join(sample.recorded() for sample in records.samples))
    written.write_text("replicates.jsonl", "\n".join(each.recorded() for each in records.replicates))
    for file, lines in records.further.items():
        written.write_text(file, "\n".join(line.recorded() for line in lines))
    for verdict in records.verdicts:
        written.add_verdict(verdict)
    written.write_info(records.info)
    return written
