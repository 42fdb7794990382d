"""What the sides of a comparison are: revisions, folders, commands, images, or services that run already."""

import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.errors import UsageError
from harness.extras.gate.runtime import require_own
from harness.host import process
from harness.plan import service

GIT_SECONDS = 120
OWN = re.compile(r"\?\? (.*/)?tfb-(verdict|history)[^/]*$")  # files of verdicts, as git status shows them
FOLDER = "dir:"
WAYS = {"cmd:": "start", "image:": "image", "http:": "url"}  # what a target begins with -> the key that it is for
TWO_FOLDERS = "give two folders (--base dir:A --head dir:B)"


@dataclass(frozen=True, kw_only=True)
class Side:
    """A folder of its own, with what its file says."""

    folder: Path
    file: service.ServiceFile


def side(
    repository: Path, target: str | None, place: Path, notes: list[str], usual: service.ServiceFile | None = None
) -> Side:
    """A side in ``place``; None is the working tree, ``usual`` what holds of base where it has no file of its own.

    Raises UsageError that says what would be one.
    """
    way: dict[str, str] = {}
    for prefix, key in WAYS.items():
        if target and target.startswith(prefix):
            way = {key: target.rstrip("/") if key == "url" else target.removeprefix(prefix)}
    if target and target.startswith("https:"):
        raise UsageError(f"{target}: no TLS is spoken here: give the http:// address behind it")
    folder = _folder(repository, f"{FOLDER}{repository}" if way else target, place, notes)
    file = usual if usual and not (folder / service.FILE).is_file() else service.read(folder)
    if file is usual:
        notes.append(f"base has no {service.FILE}: head's is used for both")
    if way:
        file = file.model_copy(update={"service": file.service.started_by(**way)})
    if url := file.service.url:
        require_own(url)
        notes.append(f"{url} runs already: its CPU is not known, so response time decides; it is not started anew")
    for name in (name for name in file.service.files if not (folder / name).exists()):
        try:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(repository / name, folder / name)
        except OSError as error:
            raise UsageError(f"service.files: {repository / name} cannot be copied: {error.strerror}") from error
    return Side(folder=folder, file=file)


def _folder(repository: Path, target: str | None, place: Path, notes: list[str]) -> Path:
    """A copy of a revision, of a folder (``dir:PATH``), or of the working tree (None): builds write into it."""
    if target and target.startswith(FOLDER):
        folder = Path(target.removeprefix(FOLDER)).resolve()
        if not folder.is_dir():
            raise UsageError(f"{target}: {folder} is not a folder")
        try:
            shutil.copytree(folder, place, symlinks=True, ignore=shutil.ignore_patterns(".git"))
        except shutil.Error as error:  # such as a socket of a server that runs
            source, _, why = error.args[0][0]
            raise UsageError(f"{source} cannot be copied: {why}: remove it, or put it elsewhere") from error
        return place
    top = _git(repository, "rev-parse", "--show-toplevel").strip()
    inside = repository.resolve().relative_to(Path(top).resolve())
    if Path(top, ".gitmodules").exists():
        notes.append(f"submodules are in neither side: {TWO_FOLDERS} where they are needed")
    if target is None:
        names = _git(repository, "-C", top, "ls-files", "-z", "-co", "--exclude-standard").split("\0")
        for name in filter(None, names):
            source = Path(top, name)
            if source.is_file() or source.is_symlink():
                (place / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, place / name, follow_symlinks=False)
        lines = _git(repository, "status", "--porcelain").splitlines()
        if changed := [line[3:] for line in lines if not OWN.match(line)]:
            more = f" and {len(changed) - 3} more" if changed[3:] else ""
            notes.append(f"head is the working tree with what is not committed: {', '.join(changed[:3])}{more}")
    else:
        # An index of its own; git archive would leave out what .gitattributes says is not to be exported.
        index = {**os.environ, "GIT_INDEX_FILE": f"{place}.index"}
        _git(repository, "read-tree", _commit(repository, target), env=index)
        _git(repository, "-C", top, "checkout-index", "--all", f"--prefix={place}/", env=index)
    if not (place / inside).is_dir():
        raise UsageError(f"{target or 'the working tree'} has no folder {inside}")
    return place / inside


def apart(repository: Path, base: str, head: str | None) -> list[str]:
    """That base has gone on since head parted from it: what was done there then is not head's."""
    targets = (base, head or "HEAD")
    if any(target.startswith((FOLDER, *WAYS)) for target in targets):
        return []
    first, second = (_commit(repository, target) for target in targets)
    parted = _run(repository, "merge-base", first, second)
    if parted.status != 0 or parted.stdout.strip() == first:
        return []
    where = parted.stdout.strip()[:12]
    return [f"{base} has changes that head has not, which count as if head had undone them: --base {where} has none"]


def _commit(repository: Path, revision: str) -> str:
    for name in (revision, f"origin/{revision}"):
        found = _run(repository, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
        if found.status == 0:
            return found.stdout.strip().splitlines()[-1]
    shallow = _git(repository, "rev-parse", "--is-shallow-repository").strip() == "true"
    hint = (
        "this clone is shallow: git fetch --unshallow, or fetch-depth: 0 where CI checks it out"
        if shallow
        else "git fetch, or a name that git branch -a shows"
    )
    raise UsageError(f"{revision!r} is no commit of {repository}: {hint}")


def _git(repository: Path, *words: str, env: Mapping[str, str] | None = None) -> str:
    if shutil.which("git") is None:
        raise UsageError(f"git is not on this machine: install it, or {TWO_FOLDERS}")
    if not repository.is_dir():
        raise UsageError(f"{repository} is not a folder")
    done = _run(repository, *words, env=env)
    if done.status != 0:
        raise UsageError(f"git {words[0]} in {repository}: {done.stdout.strip()[-300:]}; or {TWO_FOLDERS}")
    return done.stdout


def _run(repository: Path, *words: str, env: Mapping[str, str] | None = None) -> process.Completed:
    # As root in somebody else's clone git would refuse.
    own = ["-c", "safe.directory=*"] if os.geteuid() == 0 else []
    return process.run(["git", *own, "-C", str(repository), *words], seconds=GIT_SECONDS, env=env)
