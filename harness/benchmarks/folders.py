"""``python -m harness.benchmarks.folders TREE NAME…``: which folders of another tree build and verify here, as a table.

Each is built once, with stand-ins for base images that are not here, and verified by the rules of folders of other
trees, one after another. What is known already, from the record of an earlier call, is not done again; what did not
end in time is.
"""

import argparse
import json
import re
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from harness.benchmarks.command import command
from harness.errors import Exit
from harness.extras.stand_ins import make as stand_ins
from harness.host import process
from harness.paths import REPOSITORY
from harness.plan import dockerfile
from harness.plan.discovery import Implementation, Selection, scan, select
from harness.runtime import techempower
from harness.runtime.compose import client
from harness.runtime.docker import image_tag

# What a log says when a build asks for something that the machine does not reach; the group names it.
UNREACHED = (
    r"[Cc]ould ?n[o']t resolve host:? ['\"]?([\w.-]+)",
    r"unable to resolve host address \W([\w.-]+)",
    r"Temporary failure (?:in name resolution|resolving) .*?['\"(]([\w.-]+\.[a-z]+)",
    r"getaddrinfo \w+ ([\w.-]+)",
    r"lookup ([\w.-]+)[^\n]*no such host",
    r"UnknownHostException: ([\w.-]+)",
    r"Failed to (?:connect to|open TCP connection to) ([\w.-]+)",
    r"Hostname lookup for ([\w.-]+) failed",
    r"Could not reach host ([\w.-]+\w)",
    r" on mirror https?://([\w.-]+)\S* failed",
)
# A registry that is reached and does not give what is asked for, as a mirror of a part of it does.
NOT_GIVEN = r"Could not find artifact (\S+) in (\S+)"
NOT_GIVEN_TO_SBT = r"ResolveException: Error downloading (\S+)\n.*?Not found"
STOPPING_SECONDS = 90.0  # of a verification that is too late: its containers and its network are to be gone, too
LATE = "not done after"  # in the reason of what a later call, with more time or on a machine less busy, tries again
GOAL = r"\[ERROR\] (Failed to execute goal [^\n]*)"  # Maven's: what follows it is help
LACKS = r"E: Unable to locate package (\S+)|E: Package '(\S+)' has no installation candidate"


@dataclass(frozen=True, kw_only=True)
class Row:
    """What became of a folder's test; ``verified`` is test type -> outcome, with the checks that failed."""

    name: str
    language: str
    folder: str = ""  # of its tree, such as Go/fasthttp; several tests may share it
    seconds: float | None = None  # of the build; None: it did not build
    reason: str = ""  # why it did not build, or could not be verified
    verified: dict[str, str] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()

    def is_known(self, build_only: bool) -> bool:
        """Whether a later call has nothing left to do for it."""
        if LATE in self.reason:
            return build_only and self.seconds is not None
        return bool(self.reason or self.verified) or (build_only and self.seconds is not None)

    @property
    def passed(self) -> tuple[str, ...]:
        """The test types that verify; a warning is none."""
        return tuple(name for name, outcome in self.verified.items() if not outcome.startswith("fail"))

    @property
    def verifies(self) -> bool:
        """At least one test type does: ``http``, what holds for all of them, is none."""
        return any(name != "http" for name in self.passed)


def why(log: str) -> str:
    """The reason of a failed build in a line: what the machine does not reach or have, else the log's last error."""
    log = re.sub(r"\x1b\[[0-9;]*m", "", log)  # colours
    for pattern in UNREACHED:
        if found := re.search(pattern, log):
            return f"asks for {found[1]}, which is not reached"
    if found := re.search(NOT_GIVEN, log):
        return f"asks for {found[1]}, which {found[2]} does not give here"
    if found := re.search(NOT_GIVEN_TO_SBT, log):
        return f"asks for {found[1]}, which Maven Central does not give here"
    if found := re.search(LACKS, log):
        return f"Debian has no package {found[1] or found[2]}"
    if found := re.search(GOAL, log):
        return found[1][:160]
    lines = [line.strip() for line in log.splitlines() if re.search(r"\berror\b", line, re.IGNORECASE)]
    inner = [line for line in lines if not re.search(r"ERROR: (process|failed to solve)|^-+$", line)]
    return re.sub(r"^#\d+ [\d.]+ ", "", (inner or lines or log.strip().splitlines() or ["no word of it"])[-1])[:160]


def _begun(implementation: Implementation) -> Row:
    folder = "/".join(implementation.folder.parts[-2:])
    return Row(name=implementation.name, language=implementation.info().language, folder=folder)


def _text(log: Path) -> str:
    return log.read_text(encoding="utf-8", errors="replace")


def build(implementation: Implementation, folder: Path, seconds: float) -> tuple[float | None, str]:
    """Seconds of the build, or why there is none; stand-ins are made before and are not counted."""
    for image in dockerfile.of_file(implementation.dockerfile):
        if reason := stand_ins.make(image):
            return None, f"{image}: {why(reason)}"
    log = folder / f"{implementation.name}.build.log"
    file = techempower.without_syntax(implementation.dockerfile, folder / f"{implementation.name}.dockerfile")
    words = [client() or "docker", "buildx", "build", "--load", "--progress", "plain", "--file", str(file)]
    words += ["--tag", image_tag(implementation), *techempower.build_arguments(implementation, "folders")]
    began = time.monotonic()
    try:
        done = process.run([*words, str(implementation.folder)], seconds=seconds, log=log)
    except process.CommandTimeoutError:
        return None, f"{LATE} {seconds:.0f} s"
    if done.status != 0:
        return None, why(_text(log))
    return time.monotonic() - began, ""


def verify(tree: Path, name: str, types: Sequence[str], seconds: float) -> tuple[dict[str, str], tuple[str, ...], str]:
    """Outcome by test type, remarks, and why nothing could be looked at."""
    words = [str(REPOSITORY / "tfb"), "--frameworks", str(tree), "--test", name, "--mode", "verify", "--json"]
    words += ["--type", *types] if types else []
    try:
        done = process.run([*words, "--quiet"], seconds=seconds, grace=STOPPING_SECONDS)
    except process.CommandTimeoutError:
        return {}, (), f"verification {LATE} {seconds:.0f} s"
    line = next((line for line in done.stdout.splitlines() if line.startswith('{"verdicts"')), None)
    if line is None:
        return {}, (), done.stdout.strip()[-200:]
    document = json.loads(line)
    verified, remarks = {}, []
    for verdict in document["verdicts"]:
        failed = [result["check"] for result in verdict["results"] if result["outcome"] == "fail"]
        verified[verdict["test_type"]] = verdict["outcome"] + (f" ({', '.join(failed)})" if failed else "")
        remarks += [result["check"] for result in verdict["results"] if result["outcome"] == "warn"]
    return verified, tuple(dict.fromkeys(remarks)), "\n".join(document["problems"])[:200]


def table(rows: Sequence[Row]) -> str:
    """As Markdown; images of stand-ins are built upon Debian, which the page around it says."""
    lines = ["| test | language | built | verified by their rules | warnings |", "|---|---|---|---|---|"]
    for row in rows:
        failed = [f"{name} {outcome}" for name, outcome in row.verified.items() if outcome.startswith("fail")]
        reason = " ".join(row.reason.split()).replace("|", "\\|")
        found = "; ".join(
            filter(None, (" ".join(row.passed), "; ".join(failed), reason if row.seconds is not None else ""))
        )
        built = f"{row.seconds:.0f} s" if row.seconds is not None else f"no: {reason}"
        lines.append(f"| {row.name} | {row.language} | {built} | {found} | {' '.join(row.remarks)} |")
    return "\n".join(lines)


def counts(rows: Sequence[Row]) -> str:
    """The table in a sentence, and what verifies by language."""
    built = [row for row in rows if row.seconds is not None]
    verified = [row for row in built if row.verifies]
    whole = [row for row in verified if len(row.passed) == len(row.verified) and not row.reason]
    languages = Counter(row.language for row in verified)
    by_language = ", ".join(f"{name} {number}" for name, number in sorted(languages.items()))
    return (
        f"{len(rows)} tests of {len({row.language for row in rows})} languages: {len(built)} built, {len(verified)} "
        f"of {len({row.folder or row.name for row in verified})} folders verify, {len(whole)} of them in all types; "
        f"by language ({len(languages)}): {by_language or 'none'}"
    )


def main(argv: Sequence[str]) -> int:
    """Do what the record lacks, for as long as it may take, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m harness.benchmarks.folders", description=__doc__)
    parser.add_argument("tree", type=Path, help="such as FrameworkBenchmarks/frameworks")
    parser.add_argument("names", nargs="+", help="tests, as ./tfb --list-tests names them")
    parser.add_argument("--record", type=Path, required=True, help="a file, a JSON document a line, and logs beside it")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin nothing after that long")
    parser.add_argument("--each", type=float, default=900.0, help="seconds of one build, and of one verification")
    parser.add_argument("--type", nargs="+", default=[], metavar="TYPE", help="test types; default: all that it has")
    parser.add_argument("--build-only", action="store_true", help="leave verification to a later call")
    options = parser.parse_args(argv)
    options.record.parent.mkdir(parents=True, exist_ok=True)
    known = {}
    if options.record.exists():
        known = {row["name"]: Row(**row) for row in map(json.loads, options.record.read_text().splitlines())}
    chosen = select(scan(options.tree).implementations, Selection(test=tuple(options.names)))
    chosen = tuple(sorted(chosen, key=lambda implementation: options.names.index(implementation.name)))
    began = time.monotonic()
    for implementation in chosen:
        if time.monotonic() - began > options.seconds:
            break
        row = known.get(implementation.name) or _begun(implementation)
        if row.is_known(options.build_only):
            continue
        seconds: float | None = row.seconds
        reason = ""
        if seconds is None:
            seconds, reason = build(implementation, options.record.parent, options.each)
        verified: dict[str, str] = {}
        remarks: tuple[str, ...] = ()
        if seconds is not None and not options.build_only:
            verified, remarks, reason = verify(options.tree, implementation.name, options.type, options.each)
        row = Row(
            name=row.name,
            language=row.language,
            folder=row.folder,
            seconds=seconds,
            reason=reason,
            verified=verified,
            remarks=remarks,
        )
        known[row.name] = row
        with options.record.open("a") as record:
            record.write(json.dumps(asdict(row)) + "\n")
        print(table([row]).splitlines()[-1], file=sys.stderr, flush=True)
    rows = [known[i.name] for i in chosen if i.name in known]
    print(table(rows))
    print(f"\n{counts(rows)}")
    return Exit.OK


if __name__ == "__main__":
    command(main)
