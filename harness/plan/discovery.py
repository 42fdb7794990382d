"""Finds and selects implementations, which are declared in frameworks/<Language>/<name>/benchmark_config.json."""

import contextlib
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from harness.errors import ConfigError, UsageError
from harness.paths import CONFIG_FILE, FRAMEWORKS, PROGRAM, REPOSITORY
from harness.plan import trees
from harness.plan.benchmark_config import BenchmarkConfig, json_schema
from harness.plan.implementation import Implementation
from harness.plan.lenient import parse_leniently
from harness.plan.suggestions import name_file_in_errors, suggest
from harness.records import safe_read

MAX_CONFIG_BYTES = 1 << 20  # TechEmpower's largest configuration has 30 KiB
TOO_DEEP = "is one level too deep; move the folder to <Language>/<name>/"
FolderProblemKind = Literal["problem", "warning", "misplaced"]


@dataclass(frozen=True, kw_only=True)
class FolderProblem:
    """A problem with a folder: a broken configuration, an ignored key, or a missing configuration.

    A command that names the folder fails with the message. Other commands report the kinds "problem" and "warning", and
    ignore the kind "misplaced".
    """

    kind: FolderProblemKind
    path: Path  # the configuration file, even if it is missing
    message: str
    names: frozenset[str] = frozenset()  # names by which a user may refer to the folder, in lower case
    folders: frozenset[Path] = frozenset()  # folders that the problem affects

    @property
    def has_names(self) -> bool:
        """True if the configuration file exists and may therefore name implementations."""
        return self.kind == "problem" or (self.kind == "misplaced" and self.path.is_file())

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


def folder_problem(kind: FolderProblemKind, folder: Path, message: str, other: Path | None = None) -> FolderProblem:
    """Create a ``FolderProblem``. ``other`` is a second affected folder."""
    path = folder / CONFIG_FILE
    names = _names(path) if kind != "warning" else frozenset[str]()
    folders = frozenset({folder} if other is None else {folder, other})
    return FolderProblem(kind=kind, path=path, message=message, names=names, folders=folders)


def missing_config_problems(folder: Path) -> Iterator[FolderProblem]:
    """Yield likely reasons why a folder has no configuration file, such as a misspelt file name."""
    with contextlib.suppress(OSError):
        for path in sorted(folder.glob(f"*/{CONFIG_FILE}")):
            yield folder_problem("misplaced", path.parent, TOO_DEEP, folder)
    similar = [path.name for path in sorted(folder.glob("*.json")) if _letters(path.name) == _letters(CONFIG_FILE)]
    advice = f"rename {similar[0]}" if similar else f"create it, or create a new folder with {PROGRAM} new"
    yield folder_problem("misplaced", folder, f"does not exist; {advice}")


def _letters(name: str) -> str:
    """Return only the letters of a file name, in lower case."""
    return "".join(filter(str.isalpha, name.lower()))


def _names(path: Path) -> frozenset[str]:
    """Return the lower-case names by which a user may refer to a folder, even if its configuration is broken."""
    names = {path.parent.name, "/".join(path.parts[-3:-1])}
    with contextlib.suppress(OSError):
        # A UTF-16 file that is decoded as UTF-8 contains NUL characters.
        text = safe_read.read(path, MAX_CONFIG_BYTES).decode("utf-8", "replace").replace("\0", "")
        if match := re.search(r'"framework"\s*:\s*"([^"\n]{1,100})"', text):
            names.add(match[1])
    return frozenset(name.lower() for name in names)


MISPLACED = "only language folders belong at this level; move the folder to <Language>/<name>/"
MAX_SHOWN_PROBLEMS = 5  # a message about an unknown name lists at most this many broken files
RESERVED_NAMES = ("run", "all")  # "run" selects the core implementations, "all" selects all


@dataclass(frozen=True, kw_only=True)
class ScanResult:
    """The implementations found in trees, and the problems with their folders."""

    implementations: tuple[Implementation, ...] = ()
    folder_problems: tuple[FolderProblem, ...] = ()
    named_folders: frozenset[Path] = frozenset()  # implementation folders that the user named directly
    trees: tuple[Path, ...] = ()

    @property
    def problems(self) -> tuple[str, ...]:
        """A message for each broken configuration file and for each unusable entry in ``tests``."""
        return tuple(str(each) for each in self.folder_problems if each.kind == "problem")

    @property
    def warnings(self) -> tuple[str, ...]:
        """A message for each key that tfb ignored in another project's tree."""
        return tuple(str(each) for each in self.folder_problems if each.kind == "warning")

    def problems_of(self, folders: Collection[Path]) -> list[FolderProblem]:
        """Return the problems that affect any of the folders."""
        return [each for each in self.folder_problems if not each.folders.isdisjoint(folders)]


def scan_folders(*folders: Path) -> ScanResult:
    """Read all configurations below the folders and report broken configurations as problems.

    If no folders are given, read this repository's tree. In other trees, ignore invalid keys
    (``harness.plan.lenient``). If two trees have an implementation with the same name, the second gets a suffix:
    ``vertx-web@other``.
    """
    implementations: dict[str, Implementation] = {}
    problems: list[FolderProblem] = []
    named_folders: set[Path] = set()
    visited: set[Path] = set()
    scanned_trees = [trees.find_tree(folder) for folder in folders or (FRAMEWORKS,)]
    for tree in scanned_trees:
        earlier_names = frozenset(implementations)
        problems += [folder_problem("misplaced", folder, MISPLACED) for folder in tree.misplaced()]
        for folder in tree.folders():
            if folder.resolve() in visited:  # the given folders overlap
                continue
            visited.add(folder.resolve())
            declared, folder_problems = _read_folder(folder, lenient=not is_own_tree(tree.root))
            problems += folder_problems
            if folder == tree.part:
                named_folders.add(folder)
            for each in declared:
                is_taken = each.name in earlier_names
                implementation = replace(each, name=f"{each.name}@{_label(tree.root)}") if is_taken else each
                if conflict := _name_conflict(implementation, each.name, implementations):
                    problems.append(conflict)
                else:
                    implementations[implementation.name] = implementation
    return ScanResult(
        implementations=tuple(sorted(implementations.values(), key=lambda i: i.name)),
        folder_problems=tuple(problems),
        named_folders=frozenset(named_folders),
        trees=tuple(tree.part for tree in scanned_trees),
    )


def _read_folder(folder: Path, *, lenient: bool) -> tuple[tuple[Implementation, ...], list[FolderProblem]]:
    """Return the implementations in a folder, and the folder's problems."""
    path = folder / CONFIG_FILE
    try:
        path.lstat()
    except FileNotFoundError:
        return (), list(missing_config_problems(folder))
    except OSError as error:
        return (), [folder_problem("problem", folder, f"cannot read the file: {error.strerror}")]
    try:
        implementations, warnings, problems = read_config(path, lenient=lenient)
    except ConfigError as error:
        return (), [folder_problem("problem", folder, str(error).removeprefix(f"{path}: "))]
    return implementations, [
        *(folder_problem("warning", folder, message) for message in warnings),
        *(folder_problem("problem", folder, message) for message in problems),
    ]


def _name_conflict(
    implementation: Implementation, own_name: str, implementations: Mapping[str, Implementation]
) -> FolderProblem | None:
    """Return a problem if an implementation's name is reserved or already used."""
    folder = implementation.folder
    if own_name in RESERVED_NAMES:
        return folder_problem("problem", folder, f"the name {own_name!r} is reserved: choose a different name")
    if namesake := implementations.get(implementation.name):
        message = (
            f"the name {implementation.name!r} is already used by {namesake.folder / CONFIG_FILE}; in one of "
            "these files, change framework or the key in tests"
        )
        return folder_problem("problem", folder, message, namesake.folder)
    return None


def is_own_tree(tree: Path) -> bool:
    """Return whether a tree belongs to this repository, possibly in a different worktree."""
    return tree == REPOSITORY / "frameworks" or ((tree.parent / "harness").is_dir() and (tree.parent / "tfb").is_file())


def _label(tree: Path) -> str:
    return tree.parent.name if tree.name == "frameworks" else tree.name


def read_config(path: Path, *, lenient: bool = False) -> tuple[tuple[Implementation, ...], list[str], list[str]]:
    """Return a file's (implementations, warnings, problems). Unless ``lenient``, raise ConfigError for a problem."""
    with name_file_in_errors(path, json_schema):
        document = safe_read.parse_json(_require_text(safe_read.read(path, MAX_CONFIG_BYTES)))
        if lenient:
            config, warnings, problems = parse_leniently(
                document, folder=path.parent.name, language=path.parent.parent.name
            )
        else:
            config, warnings, problems = BenchmarkConfig.model_validate(document), [], []
    implementations = tuple(
        Implementation(
            name=config.framework if variant == "default" else f"{config.framework}-{variant}",
            variant=variant,
            framework=config.framework,
            folder=path.parent,
            maintainers=config.maintainers,
            entry=entry,
            # Antipatterns violate tfb's rules on purpose. TechEmpower's rules only warn about these violations.
            rules="techempower" if lenient or ANTIPATTERN_TAG in entry.tags else "tfb",
        )
        for tests in config.tests
        for variant, entry in tests.items()
    )
    return implementations, warnings, problems


def _require_text(data: bytes) -> bytes:
    """Return the content of a configuration unchanged. Raises ValueError if it is empty or not text."""
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"is not UTF-8 at byte {error.start + 1}; save it as UTF-8") from error
    if not data.strip():
        raise ValueError("is empty; expected an object with framework and tests (./tfb new writes one)")
    return safe_read.require_no_nul(data)


ANTIPATTERN_TAG = "antipattern"  # marks implementations that demonstrate the cost of a mistake


@dataclass(frozen=True, kw_only=True)
class Selection:
    """Flags that select implementations. Without flags other than ``exclude``, the core implementations are selected.

    If several of these flags are given, an implementation that matches any of them is selected.
    """

    test: tuple[str, ...] = ()  # implementation names, "run" (core) or "all"
    test_dir: tuple[str, ...] = ()  # Language/folder, or a language's folder
    test_lang: tuple[str, ...] = ()
    tag: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()


def select_implementations(scan: ScanResult, selection: Selection) -> tuple[Implementation, ...]:
    """Return the selected implementations that are not tagged "broken".

    Raises ConfigError if a named folder has a problem. Raises UsageError for unknown names, and suggests similar names.
    """
    implementations = scan.implementations
    if scan.trees and not any(tree.is_dir() for tree in scan.trees):
        raise UsageError(
            f"{', '.join(map(str, scan.trees))} is not a folder; expected <Language>/<name>/{CONFIG_FILE} below it. "
            "Change to the folder that contains frameworks/, or add --frameworks DIR"
        )
    by_name = {i.name: i for i in implementations}
    languages, folders = {lang.lower() for lang in selection.test_lang}, {_folder(name) for name in selection.test_dir}
    tags = {tag.lower() for tag in selection.tag}
    known_languages = {i.folder.parent.name.lower() for i in implementations}
    known_languages |= {t.path.parent.parent.name.lower() for t in scan.folder_problems if t.kind == "problem"}
    require_selected_valid(scan, selection)
    _require_known(scan, "", {*selection.test} - {*RESERVED_NAMES}, by_name)
    invalid = {name for each in scan.folder_problems for name in each.names}
    _require_known(scan, "--exclude: ", {name for name in selection.exclude if name.lower() not in invalid}, by_name)
    _require_known(scan, "--test-lang: ", languages, known_languages)
    _require_known(scan, "--test-dir: ", folders, {_relative_folder(i) for i in implementations} | known_languages)
    _require_known(scan, "--tag: ", tags, {tag.lower() for i in implementations for tag in i.entry.tags})

    core = {i.name for i in implementations if i.is_core} or {*by_name}  # use all if none is core
    selects_core = "run" in selection.test or not (selection.test or languages or folders or tags)

    def is_selected(i: Implementation) -> bool:
        if i.is_broken or i.name in selection.exclude:
            return False
        return (
            "all" in selection.test
            or i.name in selection.test
            or (selects_core and i.name in core)
            or not folders.isdisjoint({i.folder.parent.name.lower(), _relative_folder(i)})
            or i.folder.parent.name.lower() in languages
            or any(tag.lower() in tags for tag in i.entry.tags)
        )

    return tuple(filter(is_selected, implementations))


def require_selected_valid(scan: ScanResult, selection: Selection) -> None:
    """Raise ConfigError if a selected folder has a problem, or UsageError if ``--test`` names a folder."""
    by_name = {i.name: i for i in scan.implementations}
    unknown_names = [name for name in selection.test if name not in (*by_name, *RESERVED_NAMES)]
    selected_folders = {*scan.named_folders, *(by_name[name].folder for name in selection.test if name in by_name)}
    for name in unknown_names:
        selected_folders |= _matching_folders(scan, name)
    for place in map(_folder, selection.test_dir):
        exact = {i.folder for i in scan.implementations if _relative_folder(i) == place}
        selected_folders |= exact or _matching_folders(scan, place)
    if problems := scan.problems_of(selected_folders):
        messages = [str(each).removesuffix(", ignored") for each in problems]
        if any(each.kind == "warning" for each in problems):
            messages.append("correct or remove these keys: tfb ignores them only in folders that you do not name")
        raise ConfigError("\n".join(messages))
    for name in unknown_names:
        members = [
            i.name for i in scan.implementations if _folder(name) in (i.folder.name.lower(), _relative_folder(i))
        ]
        if members:
            raise UsageError(f"{name} is a folder with the implementations {', '.join(members)}: use their names")
        if name in {i.folder.parent.name for i in scan.implementations}:
            raise UsageError(f"{name} is a language's folder: select its implementations with --test-lang {name}")


def _matching_folders(scan: ScanResult, name: str) -> set[Path]:
    """Return the folders that a name may refer to.

    If no folder matches exactly, return the broken folders that may define the name as a variant.
    """
    name = _folder(name)
    exact = {folder for each in scan.folder_problems if name in each.names for folder in each.folders}
    exact |= {i.folder for i in scan.implementations if name in (i.folder.name.lower(), _relative_folder(i))}
    variants = {
        folder
        for each in scan.folder_problems
        if each.has_names and any(name.startswith(f"{framework}-") for framework in each.names)
        for folder in each.folders
    }
    return exact or variants


def _relative_folder(implementation: Implementation) -> str:
    """Return the folder's path relative to the tree, in lower case, for example ``java/vertx-web``."""
    return "/".join(implementation.folder.parts[-2:]).lower()


def _folder(path: str) -> str:
    return path.removeprefix("./").removeprefix("frameworks/").strip("/").lower()


def _require_known(scan: ScanResult, flag: str, names: Iterable[str], known: Collection[str]) -> None:
    """Raise UsageError for the first unknown name. The message lists broken files, because one may define the name."""
    for name in sorted(names):
        if name in known:
            continue
        if known:
            hint = suggest(name, known)
        else:
            where = ", ".join(map(str, scan.trees)) or "the selection"
            hint = f"{where} contains no implementations; expected <Language>/<name>/{CONFIG_FILE}"
        broken = [*scan.problems[:MAX_SHOWN_PROBLEMS]]
        if (omitted := len(scan.problems) - MAX_SHOWN_PROBLEMS) > 0:
            broken.append(f"and {omitted} more")
        raise UsageError("\n".join((f"{flag}unknown name {name!r}; {hint}", *broken)))
