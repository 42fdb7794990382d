"""Runs git in untrusted repositories, as the files' owner. Repository settings cannot make git start programs."""

import os
import pwd
import re
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import BinaryIO

from harness.errors import EnvironmentLacksError, UsageError
from harness.host import environment, interruption, ownership, process
from harness.host.process import Account
from harness.plain_text import printable
from harness.records import confined

SECONDS = 120.0  # default time limit for a command
STDERR_BYTES = 64 << 10
# Size limits for a commit and a file, because a small compressed object could fill the disk or memory.
MAX_COMMIT_BYTES, MAX_FILE_BYTES = 8 << 30, 1 << 30
INHERITED_VARIABLES = ("PATH", "HOME", "XDG_CONFIG_HOME", "TMPDIR", "LD_LIBRARY_PATH")
# Settings that tfb overrides in every git command, because they could make git start a program or fetch data.
OVERRIDES = (
    ("core.fsmonitor", "false"),
    ("core.hooksPath", "/dev/null"),
    ("core.attributesFile", "/dev/null"),
    ("core.pager", "cat"),
    ("core.editor", "false"),
    ("core.sshCommand", "false"),
    ("core.gitProxy", "none"),
    ("core.askPass", ""),
    ("core.alternateRefsCommand", ""),
    ("core.quotePath", "false"),
    ("core.untrackedCache", "false"),
    ("credential.helper", ""),
    ("gpg.program", "false"),
    ("gpg.ssh.program", "false"),
    ("gpg.x509.program", "false"),
    ("log.showSignature", "false"),
    ("diff.ignoreSubmodules", "all"),
    ("submodule.recurse", "false"),
    ("protocol.allow", "never"),
    ("safe.bareRepository", "explicit"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
)
VARIABLES = {
    "LC_ALL": "C",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "false",
    "SSH_ASKPASS": "false",
    "GIT_SSH_COMMAND": "false",
    # Forbid all transports, so that git fetches no objects in a partial clone (needed before git 2.45).
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_PROTOCOL_FROM_USER": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_PAGER": "cat",
}
FILTER_KEY = re.compile(r"filter\.(.+)\.(?:clean|smudge|process|required)", re.DOTALL | re.IGNORECASE)
ENTRY = re.compile(rb"(?P<mode>\d{6}) (?P<kind>\w+) (?P<object>[0-9a-f]+) +(?P<size>\d+|-)\t(?P<name>.+)", re.DOTALL)
INDEX_ENTRY = re.compile(r"(?P<tag>\S) (?P<mode>\d{6}) (?P<object>[0-9a-f]+) \d\t(?P<name>.+)", re.DOTALL)
NOT_IN_WORKING_TREE = "S"  # tag in ``git ls-files -t`` for files that a sparse checkout leaves out
SUBMODULE, LINK = "160000", "120000"
# First bytes of files that Git LFS stores elsewhere or git-crypt has encrypted.
STORED_ELSEWHERE = (b"version https://git-lfs.github.com/spec/", b"\0GITCRYPT\0")


@dataclass(frozen=True, kw_only=True)
class GitResult:
    """The exit status and the output of a git command."""

    status: int
    stdout: bytes
    stderr: str

    @property
    def text(self) -> str:
        """Return standard output as text. Preserve bytes that are not UTF-8, because file names may contain them."""
        return os.fsdecode(self.stdout)

    @property
    def names(self) -> list[str]:
        """Return the items of NUL-separated output (option ``-z``)."""
        return [name for name in self.text.split("\0") if name]


@dataclass(frozen=True, kw_only=True)
class TreeEntry:
    """A file or submodule in a commit."""

    mode: str
    object: str
    size: int
    name: str


@dataclass(frozen=True, kw_only=True)
class Repository:
    """A git repository. The folder ``root`` contains ``.git``. If ``account`` is None, git runs under tfb's account."""

    root: Path
    account: Account | None = None

    @classmethod
    def containing(cls, folder: Path) -> "Repository":
        """Return the repository that contains a folder.

        Raises UsageError if no repository contains it, or if the folder and the repository have different owners.
        """
        folder = folder.resolve()
        if not folder.is_dir():
            raise UsageError(f"{folder} is not a folder")
        for top in (folder, *folder.parents):
            if os.path.lexists(top / ".git"):
                return cls(root=top, account=_owner(folder, top))
        raise UsageError(f"{folder} is not in a git repository")

    @cached_property
    def overrides(self) -> tuple[str, ...]:
        """Return git options that disable all programs that the repository's configuration names, including filters."""
        fixed = tuple(word for key, value in OVERRIDES for word in ("-c", f"{key}={value}"))
        result = self._run((*fixed, "config", "--null", "--name-only", "--get-regexp", r"^filter\."), None, SECONDS)
        if result.status not in (0, 1):  # 1: no filters are configured
            raise UsageError(f"git cannot read the configuration of {self.root}: {result.stderr.strip()[-300:]}")
        names = {match[1] for key in result.names if (match := FILTER_KEY.fullmatch(key))}
        if invalid := sorted(name for name in names if "=" in name):
            raise UsageError(
                f"{self.root}/.git/config: filter {invalid[0]!r}: a filter name must not contain '='. Rename the filter"
            )
        keys = (("clean", ""), ("smudge", ""), ("process", ""), ("required", "false"))
        filters = (f"filter.{name}.{key}={value}" for name in sorted(names) for key, value in keys)
        return (*fixed, *(word for setting in filters for word in ("-c", setting)))

    def run(
        self, *arguments: str, stdin: Path | None = None, seconds: float = SECONDS, output: BinaryIO | None = None
    ) -> GitResult:
        """Run a git command and return the result even if it fails. Raises EnvironmentLacksError if git is missing."""
        return self._run((*self.overrides, *arguments), stdin, seconds, output)

    def read(self, *arguments: str, stdin: Path | None = None, output: BinaryIO | None = None) -> GitResult:
        """Run a git command and return the result. Raises UsageError with git's error output if the command fails."""
        result = self.run(*arguments, stdin=stdin, output=output)
        if result.status != 0:
            raise UsageError(f"git {arguments[0]} in {self.root}: {result.stderr.strip()[-300:] or 'failed'}")
        return result

    def commit(self, revision: str) -> str:
        """Return the commit id of a revision, or else of ``origin/REVISION``. Raises UsageError if neither exists."""
        for name in (revision, f"origin/{revision}"):
            result = self.run("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
            if result.status == 0 and re.fullmatch(r"[0-9a-f]{40,64}", identity := result.text.strip()):
                return identity
        shallow = self.read("rev-parse", "--is-shallow-repository").text.strip() == "true"
        hint = (
            "this clone is shallow. Run git fetch --unshallow, or set fetch-depth: 0 in the CI checkout"
            if shallow
            else "run git fetch, or use a name that git branch -a shows"
        )
        raise UsageError(f"{revision!r} is not a commit in {self.root}: {hint}")

    def submodule(self, name: str) -> "Repository | None":
        """Return a submodule's repository, or None if the submodule is not checked out."""
        folder = self.root.resolve() / name
        is_inside = folder.resolve() == folder  # False if a symbolic link points outside the repository
        return Repository.containing(folder) if is_inside and os.path.lexists(folder / ".git") else None

    def tracked_files(self) -> tuple[list[str], list[str]]:
        """Return (names of tracked files, names of submodules). Raises UsageError if a sparse checkout omits files."""
        listed = self.read("ls-files", "-z", "-t", "--stage").names
        entries = [match for line in listed if (match := INDEX_ENTRY.fullmatch(line))]
        absent = [entry["name"] for entry in entries if entry["tag"] == NOT_IN_WORKING_TREE]
        if absent := [name for name in absent if not os.path.lexists(self.root / name)]:
            raise UsageError(
                f"{self.root} is a sparse checkout, which lacks {printable(absent[0])} ({len(absent)} missing files): "
                "run git sparse-checkout disable, or compare commits with --head HEAD"
            )
        files = dict.fromkeys(entry["name"] for entry in entries if entry["mode"] != SUBMODULE)
        submodules = dict.fromkeys(entry["name"] for entry in entries if entry["mode"] == SUBMODULE)
        return list(files), list(submodules)

    def entries(self, commit: str, *under: str) -> list[TreeEntry]:
        """Return a commit's files and submodules, or only those in ``under``. Raises UsageError for an unsafe name."""
        completed = self.run("ls-tree", "-r", "-z", "--long", "--full-tree", commit, "--", *under)
        if completed.status != 0:
            raise UsageError(
                f"{self.root}: this clone lacks files of commit {commit[:12]} ({completed.stderr.strip()[-200:]}): "
                "run git fetch there, or make a full clone"
            )
        entries = []
        for line in filter(None, completed.stdout.split(b"\0")):
            if (match := ENTRY.fullmatch(line)) is None:
                raise UsageError(f"git ls-tree in {self.root}: cannot read {line!r:.200}")
            name = os.fsdecode(match["name"])
            if any(part.lower() in ("", ".", "..", ".git") for part in name.split("/")):
                raise UsageError(f"commit {commit[:12]} of {self.root}: {name!r} is not a valid file name")
            size = 0 if match["size"] == b"-" else int(match["size"])
            entries.append(
                TreeEntry(mode=match["mode"].decode(), object=match["object"].decode(), size=size, name=name)
            )
        return entries

    def export(self, commit: str, target: Path, *under: str) -> list[str]:
        """Write the files of a commit and its submodules to ``target``. Return notes about missing content.

        Write files exactly as git stores them, without filters, attributes or line-end conversion. The repository
        therefore cannot make tfb execute code.
        """
        target.mkdir(parents=True, exist_ok=True)
        return self._export(commit, target, "", under)

    def _export(self, commit: str, target_folder: Path, prefix: str, under: Sequence[str]) -> list[str]:
        """Export a commit to ``prefix`` below ``target_folder``. The prefix is empty or ends with a slash."""
        entries = self.entries(commit, *under)
        files = [entry for entry in entries if entry.mode != SUBMODULE]
        if sum(entry.size for entry in files) > MAX_COMMIT_BYTES:
            raise UsageError(
                f"commit {commit[:12]} of {self.root} contains more than {MAX_COMMIT_BYTES >> 30} GiB, tfb's limit"
            )
        if large := next((entry.name for entry in files if entry.size > MAX_FILE_BYTES), ""):
            raise UsageError(
                f"commit {commit[:12]} of {self.root}: {large} is larger than {MAX_FILE_BYTES >> 30} GiB, tfb's limit "
                "for a file"
            )
        links: list[tuple[str, bytes]] = []
        pointers: list[str] = []
        for entry, content in self._contents(files):
            name = f"{prefix}{entry.name}"
            if entry.mode == LINK:
                links.append((name, content))
                continue
            if content.startswith(STORED_ELSEWHERE):
                pointers.append(name)
            with self._writing(name):
                confined.write(target_folder, name, content, 0o755 if entry.mode == "100755" else 0o644)
        notes = []
        if pointers:
            more = f" and {len(pointers) - 3} more" if pointers[3:] else ""
            verb = "contain" if pointers[1:] else "contains"
            notes.append(
                f"tfb does not run git filters (for example Git LFS), so {', '.join(pointers[:3])}{more} {verb} "
                "pointers instead of the content. If the content is needed, compare two folders (--base dir:A --head "
                "dir:B)"
            )
        for entry in entries:
            if entry.mode == SUBMODULE:
                name, inner = f"{prefix}{entry.name}", self.submodule(entry.name)
                notes += (
                    inner._export(entry.object, target_folder, f"{name}/", ()) if inner else [not_checked_out(name)]
                )
        for name, target in links:  # create links last, so that no file is written through a link
            with self._writing(name):
                confined.link(target_folder, name, target)
        return notes

    @contextmanager
    def _writing(self, name: str) -> Iterator[None]:
        """Convert an OSError in the block to a UsageError that names the file."""
        try:
            yield
        except OSError as error:
            raise UsageError(f"cannot write {name} from {self.root}: {error.strerror}") from error

    def _contents(self, entries: Sequence[TreeEntry]) -> Iterator[tuple[TreeEntry, bytes]]:
        """Yield each entry with its content. Raises UsageError for an entry that this clone lacks."""
        with ownership.make_scratch_folder("git") as folder:
            objects, contents = folder / "objects", folder / "contents"
            objects.write_text("".join(f"{entry.object}\n" for entry in entries), encoding="ascii")
            with contents.open("wb") as output:
                result = self._run((*self.overrides, "cat-file", "--batch"), objects, 10 * SECONDS, output)
            with contents.open("rb") as file:
                for entry in entries:
                    header = file.readline().split()
                    if len(header) != 3 or header[1] != b"blob":
                        raise UsageError(
                            f"{self.root}: this clone lacks {entry.name} ({result.stderr.strip()[-200:]}): make a full "
                            "clone, or fetch the commit with all files"
                        )
                    content = file.read(int(header[2]))
                    file.read(1)
                    yield entry, content

    def _run(
        self, arguments: Sequence[str], stdin: Path | None, seconds: float, output: BinaryIO | None = None
    ) -> GitResult:
        """Run git in the repository's folder, with the environment from ``_environment``."""
        command = [git_program(), "--no-pager", "--literal-pathspecs", "-C", str(self.root), *arguments]
        deadline = time.monotonic() + seconds
        with ownership.make_scratch_folder("git") as folder:
            out_path, err_path = folder / "stdout", folder / "stderr"
            with (
                out_path.open("wb") as stdout_file,
                err_path.open("wb") as err,
                (stdin or Path(os.devnull)).open("rb") as input_file,
            ):
                options = process.ProcessOptions(cwd=Path("/"), env=self._environment(), account=self.account)
                child = process.Child(
                    command, options, stdin=input_file.fileno(), stdout=output or stdout_file, stderr=err
                )
                with process.running(child, grace=2.0):
                    while (status := child.wait(min(process.POLL_SECONDS, deadline - time.monotonic()))) is None:
                        interruption.raise_if_pending()
                        if time.monotonic() > deadline:
                            raise process.CommandTimeoutError(f"git {arguments[-1]} exceeded {seconds:.0f} s")
            with err_path.open("rb") as file:
                stderr = file.read(STDERR_BYTES).decode(errors="replace")
            return GitResult(status=status, stdout=out_path.read_bytes(), stderr=stderr)

    def _environment(self) -> Mapping[str, str]:
        """Return the environment for all git commands, without the caller's GIT_* variables."""
        variables = {
            **{name: os.environ[name] for name in INHERITED_VARIABLES if name in os.environ},
            "PATH": environment.absolute_search_path(),
            **VARIABLES,
            "GIT_WORK_TREE": str(self.root),
            "GIT_CEILING_DIRECTORIES": str(self.root.parent),
        }
        if self.account is not None:
            variables |= {"HOME": "/nonexistent", "XDG_CONFIG_HOME": "/nonexistent", "GIT_CONFIG_GLOBAL": "/dev/null"}
        return variables


def not_checked_out(name: str) -> str:
    """Return a note about a submodule that is missing from the working tree."""
    return (
        f"submodule {printable(name)} is left out because it is not checked out: "
        "run git submodule update --init --recursive"
    )


def git_program() -> str:
    """Return the absolute path of git. Raises EnvironmentLacksError if git is not installed."""
    path = shutil.which("git", path=environment.absolute_search_path())
    if path is None:
        raise EnvironmentLacksError("git is not installed: install it, for example with apt-get install git")
    return path


def _owner(folder: Path, root: Path) -> Account | None:
    """Return the repository owner's account, or None if git can run under tfb's account.

    Raises UsageError if the folder, the repository's root and ``.git`` have different owners.
    """
    if os.geteuid() != 0:
        return None  # git itself refuses repositories that belong to other users
    owners = {place: place.stat().st_uid for place in (root / ".git", root, folder)}
    uid = owners[root / ".git"]
    if other := next((place for place, owner in owners.items() if owner != uid), None):
        raise UsageError(
            f"{other} belongs to uid {owners[other]} and {root / '.git'} to uid {uid}: give both to the same "
            "account (chown -R), or run tfb as the user who owns the repository"
        )
    if uid == 0:
        return None
    try:
        gid = pwd.getpwuid(uid).pw_gid
    except KeyError:
        gid = root.stat().st_gid
    return Account(name=f"uid {uid}", uid=uid, gid=gid)
