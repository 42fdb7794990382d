"""Two versions of a service side by side: ``./tfb compare --base main`` where a tfb.toml is."""

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from harness.cli.consent import settled
from harness.cli.flags import RunFlags
from harness.cli.settings import settings
from harness.cli.verbs import Asked
from harness.errors import Exit, TfbError, UsageError
from harness.host import interruption, process
from harness.plan import service
from harness.records.models import Closed
from harness.report import gate as report
from harness.stats.gate import BASE, COPY, HEAD, GateResult, judge

PROFILE = "gate"
GIT_SECONDS = 120
EXIT = {"failed": Exit.FAILED, "slower": Exit.FAILED, "cannot tell": Exit.CANNOT_TELL}
SHOWN = 10  # sessions of a history


@dataclass(frozen=True, kw_only=True)
class Outputs:
    """Where the verdict goes beside the terminal."""

    json: bool = False
    markdown: bool = False
    history: str | None = None
    strict: bool = False


def compare(
    folder: Path,
    base: str,
    head: str | None,
    flags: RunFlags,
    fail_over: float,
    outputs: Outputs,
    words: tuple[str, ...],
) -> int:
    """Measure both and print the verdict; ``base`` and ``head`` are revisions, or ``dir:PATH``."""
    flags = replace(flags, profile=flags.profile or PROFILE, runtime="local", quiet=flags.quiet or outputs.markdown)
    chosen = settings(Asked(mode="benchmark", test=(), flags=flags), words)
    with tempfile.TemporaryDirectory(prefix="tfb-gate-") as scratch:
        place = Path(scratch)
        place.chmod(0o755)  # servers run as somebody else
        notes: list[str] = []
        base_folder = _folder(folder, base, place / "base", notes)
        head_folder = _folder(folder, head, place / "head", notes)
        file = service.read(head_folder)  # head's says what is asked of both
        if not (base_folder / service.FILE).is_file():
            notes.append(f"base has no {service.FILE}: head's is used for both")
        started = service.read(base_folder) if (base_folder / service.FILE).is_file() else file
        asked_of_base = started.model_copy(update={"request": file.request})
        twin = place / "base-copy"
        shutil.copytree(base_folder, twin, symlinks=True, ignore=shutil.ignore_patterns(".git"))
        sides = (
            service.side(asked_of_base, base_folder, BASE, chosen.seed),
            service.side(file, head_folder, HEAD, chosen.seed),
            service.side(asked_of_base, twin, COPY, chosen.seed),
        )
        load = (Closed(connections=file.service.connections),)
        chosen = settled(
            replace(
                chosen,
                services=sides,
                cells={side.name: dict.fromkeys(side.requests, load) for side in sides},
                reference=BASE,
                results=Path(flags.results) if flags.results else place / "results",
            )
        )
        result = _measured(chosen, fail_over, base, head or "the working tree", notes)
    return _show(result, outputs)


def _measured(chosen: object, fail_over: float, base: str, head: str, notes: list[str]) -> GateResult:
    from harness.experiment import progress, workflow
    from harness.plan.config import Settings

    assert isinstance(chosen, Settings)  # noqa: S101 - what is loaded late
    with interruption.deferred():
        shown = progress.Progress(progress.display(quiet=chosen.quiet or chosen.json))
        records = workflow.benchmark(chosen, shown).records
    for implementation in records.info.implementations:
        build = implementation.build
        if build and build.status != "ok":
            side = "base" if implementation.name == COPY else implementation.name
            raise SideError(f"{side} could not be built: {build.reason}", of_head=side == HEAD)
    trials = {trial.implementation for trial in records.trials}
    for side in (BASE, HEAD):
        failed = next((p for p in records.processes if p.implementation == side and p.status == "failed"), None)
        if side not in trials and failed:
            raise SideError(f"{side} could not be measured: {failed.reason}", of_head=side == HEAD)
    return judge(records, fail_over, base, head, notes)


class SideError(TfbError):
    """A side could not be built, or never answered: of head that is a failure, of base nothing can be told."""

    def __init__(self, message: str, *, of_head: bool) -> None:
        super().__init__(message)
        self.exit_code = Exit.FAILED if of_head else Exit.CANNOT_TELL


def _show(result: GateResult, outputs: Outputs) -> int:
    if outputs.history:
        line = result.model_dump(mode="json")
        with Path(outputs.history).open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
    if outputs.json:
        print(result.model_dump_json())
    else:
        print(report.markdown(result) if outputs.markdown else report.text(result))
    if outputs.history and not outputs.json:
        print("\n".join(_history(Path(outputs.history))))
    code = EXIT.get(result.verdict, Exit.OK)
    return Exit.FAILED if outputs.strict and code is Exit.CANNOT_TELL else code


def _history(path: Path) -> Iterator[str]:
    """The latest sessions, a line each."""
    for line in path.read_text(encoding="utf-8").splitlines()[-SHOWN:]:
        try:
            found = GateResult.model_validate_json(line)
        except ValueError as error:
            raise UsageError(f"{path}: a line is no session of ./tfb compare: {line[:80]}") from error
        when = datetime.fromtimestamp(found.started_at, UTC).strftime("%Y-%m-%d %H:%M")
        yield f"{when}  {found.head:<24} {report.headline(found)}"


# ---- what the sides are ---------------------------------------------------------------------------------------------


def _folder(repository: Path, target: str | None, place: Path, notes: list[str]) -> Path:
    """A copy of a revision, of a folder (``dir:PATH``), or of the working tree (None): builds write into it."""
    if target and target.startswith("dir:"):
        folder = Path(target.removeprefix("dir:")).resolve()
        if not folder.is_dir():
            raise UsageError(f"{target}: {folder} is not a folder")
        shutil.copytree(folder, place, symlinks=True, ignore=shutil.ignore_patterns(".git"))
        return place
    top = _git(repository, "rev-parse", "--show-toplevel").strip()
    inside = repository.resolve().relative_to(Path(top).resolve())
    if target is None:
        names = _git(repository, "-C", top, "ls-files", "-z", "-co", "--exclude-standard").split("\0")
        for name in filter(None, names):
            source = Path(top, name)
            if source.is_file() or source.is_symlink():
                (place / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, place / name, follow_symlinks=False)
        if changed := _git(repository, "status", "--porcelain").strip():
            notes.append(f"head is the working tree with {len(changed.splitlines())} changes that are not committed")
    else:
        commit = _commit(repository, target)
        archive = place.with_suffix(".tar")
        _git(repository, "-C", top, "archive", "--format=tar", "-o", str(archive), commit)
        shutil.unpack_archive(archive, place)
        archive.unlink()
    if not (place / inside).is_dir():
        raise UsageError(f"{target or 'the working tree'} has no folder {inside}")
    return place / inside


def _commit(repository: Path, revision: str) -> str:
    for name in (revision, f"origin/{revision}"):
        found = process.run(
            ["git", "-C", str(repository), "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}"],
            seconds=GIT_SECONDS,
        )
        if found.status == 0:
            return found.stdout.strip().splitlines()[-1]
    shallow = _git(repository, "rev-parse", "--is-shallow-repository").strip() == "true"
    hint = (
        f"this clone is shallow: git fetch --depth 1 origin {revision}:{revision}"
        if shallow
        else "git fetch, or a name that git branch -a shows"
    )
    raise UsageError(f"{revision!r} is no commit of {repository}: {hint}")


def _git(repository: Path, *words: str) -> str:
    if shutil.which("git") is None:
        raise UsageError("git is not on this machine: install it, or give two folders (--base dir:A --head dir:B)")
    if not repository.is_dir():
        raise UsageError(f"{repository} is not a folder")
    # As root in somebody else's clone git would refuse.
    own = ["-c", f"safe.directory={os.path.realpath(repository)}"] if os.geteuid() == 0 else []
    done = process.run(["git", *own, "-C", str(repository), *words], seconds=GIT_SECONDS)
    if done.status != 0:
        said = done.stdout.strip()[-300:]
        raise UsageError(f"git {words[0]} in {repository}: {said}; or give two folders (--base dir:A --head dir:B)")
    return done.stdout
