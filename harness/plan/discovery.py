"""Finds the implementations: every frameworks/<Language>/<name>/benchmark_config.json, broken ones as named errors."""

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Literal

from harness.errors import ConfigError, UsageError
from harness.paths import CONFIG_FILE, FRAMEWORKS, REPOSITORY
from harness.plan import trees
from harness.plan.benchmark_config import BenchmarkConfig, LocalRun, TestEntry, json_schema
from harness.plan.folder_problems import MAX_CONFIG_BYTES, FolderProblem, folder_problem, missing_config_problems
from harness.plan.lenient import parse_leniently
from harness.plan.suggestions import name_file_in_errors, suggest
from harness.plan.testtypes import TestType
from harness.plan.testtypes.registry import TEST_TYPES
from harness.records import safe_read
from harness.records.run_info import BuildRecord, ImplementationInfo

MISPLACED = "lies where a language's folder should be; move it to <Language>/<name>/"
MAX_SHOWN_PROBLEMS = 5  # broken files beside an unknown name
RESERVED_NAMES = ("run", "all")  # names of many: the core ones, and all
Rules = Literal["tfb", "techempower"]


@dataclass(frozen=True, kw_only=True)
class Implementation:
    """One entry of a benchmark_config.json."""

    name: str  # the framework's name, or framework-variant
    variant: str  # "default" or the variant's name
    framework: str
    folder: Path
    maintainers: tuple[str, ...]
    entry: TestEntry
    rules: Rules = "tfb"  # by which it is verified
    allowed: tuple[str, ...] = ()  # privileges beyond a container's usual ones, consented to by name
    ready: str | None = None  # path that answers 200 once it is up; None: that of its first test type
    ready_at_200: bool = True  # False: any answer but a server's error, where no plain GET is known to be one
    requests: Mapping[str, TestType] = field(default_factory=dict)  # of a service that declares its own test types

    @property
    def is_service(self) -> bool:
        """Whether it is somebody's own service, which knows nothing of the six test types."""
        return bool(self.requests)

    @cached_property
    def test_types(self) -> Mapping[str, TestType]:
        """By name: its own, or those of the registry that it has a URL for, in the order of a process."""
        return self.requests or {t.name: t for t in TEST_TYPES.values() if self.entry.urls.get(t.url_key)}

    @cached_property
    def urls(self) -> Mapping[str, str]:
        """Test type name -> URL path, in the order in which a process runs them."""
        return {
            name: kind.requests[0].target if kind.requests else self.entry.urls[kind.url_key]
            for name, kind in self.test_types.items()
        }

    @property
    def ready_path(self) -> str:
        """A path that answers 200 once the server is up: its first test type's, with one query where it counts."""
        if self.ready:
            return self.ready
        name, url = next(iter(self.urls.items()))
        test_type = self.test_types[name]
        return f"{url}1" if test_type.counts_rows else test_type.target(url)

    @property
    def is_broken(self) -> bool:
        """Marked as broken: known, but never run."""
        return "broken" in (tag.lower() for tag in self.entry.tags)

    @property
    def is_core(self) -> bool:
        """Among those that ``--test run`` takes."""
        return CORE_TAG in (tag.lower() for tag in self.entry.tags)

    @property
    def declared_name(self) -> str:
        """The name that its file gives it, whatever it is called in a run."""
        return self.framework if self.variant == "default" else f"{self.framework}-{self.variant}"

    @property
    def dockerfile(self) -> Path:
        """The Dockerfile that builds it."""
        return self.folder / (self.entry.dockerfile or f"{self.declared_name}.dockerfile")

    @property
    def unsupported_reason(self) -> str | None:
        """Why it cannot be run here although it can be read: the database that it asks for; None: it can."""
        database = self.entry.database
        if database in ("postgres", "none"):
            return None
        name = {"mysql": "MySQL", "mongodb": "MongoDB"}.get(database, database)
        return f"asks for {name}, and only PostgreSQL is served: a variant of it that declares no database would run"

    @property
    def local(self) -> LocalRun | None:
        """How to run it without Docker, if it says so."""
        return self.entry.local

    @property
    def stack(self) -> str:
        """Everything that names its runtime, in lower case: decides whether the cap of JIT runtimes applies."""
        words = (self.entry.language, self.entry.platform, self.entry.webserver, self.framework)
        return " ".join(word for word in words if word).lower()

    @property
    def digest(self) -> str:
        """Of what its configuration says: commands, URLs, environment and all else."""
        said = self.entry.model_dump_json() + json.dumps(dict(self.entry.urls), sort_keys=True)
        return hashlib.sha256(said.encode()).hexdigest()[:16]

    def info(self, build: BuildRecord | None = None) -> ImplementationInfo:
        """Its record in run.json: what its entry says under the same names, and what follows from its place."""
        shared = ImplementationInfo.model_fields.keys() & TestEntry.model_fields.keys()
        said = {key: getattr(self.entry, key) for key in shared}
        ours = self.folder.is_relative_to(REPOSITORY)
        place = self.folder.relative_to(REPOSITORY if ours else self.folder.parent.parent)
        derived = {
            "name": self.name,
            "framework": self.entry.framework or self.framework,
            "project": self.framework,
            "folder": place.as_posix(),
            "rules": self.rules,
            "allowed": self.allowed,
            "display_name": self.entry.display_name or self.name,
            "maintainers": self.maintainers,
            "test_types": tuple(self.urls),
            "digest": self.digest,
            "build": build,
        }
        return ImplementationInfo.model_validate({k: v for k, v in (said | derived).items() if v is not None})


@dataclass(frozen=True, kw_only=True)
class ScanResult:
    """What trees hold: the implementations by name, and what is wrong with their folders."""

    implementations: tuple[Implementation, ...] = ()
    folder_problems: tuple[FolderProblem, ...] = ()
    named: frozenset[Path] = frozenset()  # folders of implementations that were given in place of a tree
    trees: tuple[Path, ...] = ()

    @property
    def problems(self) -> tuple[str, ...]:
        """One message for each broken file or test."""
        return tuple(str(each) for each in self.folder_problems if each.kind == "problem")

    @property
    def warnings(self) -> tuple[str, ...]:
        """One message for each key of another tree that was set aside."""
        return tuple(str(each) for each in self.folder_problems if each.kind == "warning")

    def problems_of(self, folders: Collection[Path]) -> list[FolderProblem]:
        """Return what is wrong with these folders."""
        return [each for each in self.folder_problems if not each.folders.isdisjoint(folders)]


def scan_folders(*folders: Path) -> ScanResult:
    """Read every configuration below the folders (default: ours); a broken one becomes a problem, not a crash.

    A folder is a tree, a checkout with one, or a part of one (``harness.plan.trees``). Another tree than ours is read
    as its own toolset would (``harness.plan.lenient``). A name that an earlier tree has taken gets its own tree's name
    behind it: ``vertx-web@other``.
    """
    found: dict[str, Implementation] = {}
    problems: list[FolderProblem] = []
    named: set[Path] = set()
    seen: set[Path] = set()
    places = [trees.find_tree(folder) for folder in folders or (FRAMEWORKS,)]
    for tree in places:
        before = frozenset(found)
        problems += [folder_problem("misplaced", folder, MISPLACED) for folder in tree.misplaced()]
        for folder in tree.folders():
            if folder.resolve() in seen:  # two of the folders overlap
                continue
            seen.add(folder.resolve())
            made, wrong = _read_folder(folder, foreign=not is_own_tree(tree.root))
            problems += wrong
            if folder == tree.part:
                named.add(folder)
            for each in made:
                implementation = replace(each, name=f"{each.name}@{_label(tree.root)}") if each.name in before else each
                if unusable := _unusable(implementation, each.name, found):
                    problems.append(unusable)
                else:
                    found[implementation.name] = implementation
    return ScanResult(
        implementations=tuple(sorted(found.values(), key=lambda i: i.name)),
        folder_problems=tuple(problems),
        named=frozenset(named),
        trees=tuple(tree.part for tree in places),
    )


def _read_folder(folder: Path, *, foreign: bool) -> tuple[tuple[Implementation, ...], list[FolderProblem]]:
    """Return the implementations of a folder and what is wrong with it."""
    path = folder / CONFIG_FILE
    try:
        path.lstat()
    except FileNotFoundError:
        return (), list(missing_config_problems(folder))
    except OSError as error:
        return (), [folder_problem("problem", folder, f"cannot be read: {error.strerror}")]
    try:
        made, aside, wrong = read_config(path, foreign=foreign)
    except ConfigError as error:
        return (), [folder_problem("problem", folder, str(error).removeprefix(f"{path}: "))]
    warnings = [folder_problem("warning", folder, words) for words in aside]
    return made, [*warnings, *(folder_problem("problem", folder, words) for words in wrong)]


def _unusable(made: Implementation, own: str, found: Mapping[str, Implementation]) -> FolderProblem | None:
    """Return why an implementation cannot have its name, which it shares or which means many."""
    if own in RESERVED_NAMES:
        return folder_problem(
            "problem", made.folder, f"the name {own!r} means many implementations: give it another one"
        )
    if other := found.get(made.name):
        message = (
            f"the name {made.name!r} is taken by {other.folder / CONFIG_FILE}; change framework, or the key of the "
            "variant in tests, in one of the two files"
        )
        return folder_problem("problem", made.folder, message, other.folder)
    return None


def is_own_tree(tree: Path) -> bool:
    """This repository's folder, or that of another of its commits (a worktree, which has our launcher beside it)."""
    return tree == FRAMEWORKS or ((tree.parent / "harness").is_dir() and (tree.parent / "tfb").is_file())


def _label(tree: Path) -> str:
    return tree.parent.name if tree.name == "frameworks" else tree.name


def read_config(path: Path, *, foreign: bool = False) -> tuple[tuple[Implementation, ...], list[str], list[str]]:
    """The implementations of a file, and the warnings and problems of a foreign one.

    Raises ConfigError that names the file, the key and what is allowed.
    """
    with name_file_in_errors(path, json_schema):
        document = safe_read.parse_json(_text(safe_read.read(path, MAX_CONFIG_BYTES)))
        if foreign:
            config, aside, wrong = parse_leniently(document, folder=path.parent.name, language=path.parent.parent.name)
        else:
            config, aside, wrong = BenchmarkConfig.model_validate(document), [], []
    made = tuple(
        Implementation(
            name=config.framework if variant == "default" else f"{config.framework}-{variant}",
            variant=variant,
            framework=config.framework,
            folder=path.parent,
            maintainers=config.maintainers,
            entry=entry,
            # What shows what must not be done breaks requirements of ours on purpose: those warn, none is let off.
            rules="techempower" if foreign or ANTIPATTERN_TAG in entry.tags else "tfb",
        )
        for tests in config.tests
        for variant, entry in tests.items()
    )
    return made, aside, wrong


def _text(data: bytes) -> bytes:
    """Return the bytes of a configuration unchanged; raise ValueError for what is no text, or none at all."""
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"is not UTF-8 at byte {error.start + 1}; save it as UTF-8") from error
    if not data.strip():
        raise ValueError("is empty; expected an object with framework and tests (./tfb new writes one)")
    return safe_read.require_no_nul(data)


ANTIPATTERN_TAG = "antipattern"  # tag of what is measured to show its cost
CORE_TAG = "core"  # tag of the implementations that --test run takes


@dataclass(frozen=True, kw_only=True)
class Selection:
    """Which implementations a command names; empty means no restriction by that flag."""

    test: tuple[str, ...] = ()  # names, or one of the reserved words: "run" for the core ones, "all"
    test_dir: tuple[str, ...] = ()  # Language/folder, or a language's folder
    test_lang: tuple[str, ...] = ()
    tag: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()


def select_implementations(found: ScanResult, wanted: Selection) -> tuple[Implementation, ...]:
    """Return the selected implementations without those that are tagged as broken.

    Raises ConfigError that says what is wrong with a folder whose implementation is named, and UsageError with the
    nearest names for an unknown name.
    """
    implementations = found.implementations
    by_name = {i.name: i for i in implementations}
    languages, folders = {lang.lower() for lang in wanted.test_lang}, {_folder(name) for name in wanted.test_dir}
    tags = {tag.lower() for tag in wanted.tag}
    known_languages = {i.folder.parent.name.lower() for i in implementations}
    known_languages |= {t.path.parent.parent.name.lower() for t in found.folder_problems if t.kind == "problem"}
    require_selected_valid(found, wanted)
    _require_known(found, "", {*wanted.test} - {*RESERVED_NAMES}, by_name)  # with and without a flag before it
    broken = {name for each in found.folder_problems for name in each.names}
    _require_known(found, "--exclude: ", {name for name in wanted.exclude if name.lower() not in broken}, by_name)
    _require_known(found, "--test-lang: ", languages, known_languages)
    _require_known(found, "--test-dir: ", folders, {_place(i) for i in implementations} | known_languages)
    _require_known(found, "--tag: ", tags, {tag.lower() for i in implementations for tag in i.entry.tags})

    core = {i.name for i in implementations if i.is_core} or {*by_name}  # a folder without the tag is all core
    takes_core = "run" in wanted.test or not (wanted.test or languages or folders or tags)

    def named(i: Implementation) -> bool:
        if "all" in wanted.test or i.name in wanted.test or (takes_core and i.name in core):
            return True
        language = i.folder.parent.name.lower()
        return language in languages | folders or _place(i) in folders or any(t.lower() in tags for t in i.entry.tags)

    return tuple(i for i in implementations if named(i) and i.name not in wanted.exclude and not i.is_broken)


def require_selected_valid(found: ScanResult, wanted: Selection) -> None:
    """Raise ConfigError when something is wrong with a folder that the selection names.

    Raises UsageError for a folder's name that is not the name of its implementation.
    """
    by_name = {i.name: i for i in found.implementations}
    named = set(found.named)
    for name in {*wanted.test} - {*RESERVED_NAMES}:
        named |= {by_name[name].folder} if name in by_name else _meant(found, name)
    sound = {_place(i) for i in found.implementations}
    for place in map(_folder, wanted.test_dir):
        named |= {i.folder for i in found.implementations if _place(i) == place}
        named |= _meant(found, place) if place not in sound else set()
    if troubles := found.problems_of(named):
        told = [str(each).removesuffix(", set aside") for each in troubles]
        if any(each.kind == "warning" for each in troubles):
            told.append("correct or remove these keys: they are set aside only where no command names the folder")
        raise ConfigError("\n".join(told))
    for name in wanted.test:
        within = [i.name for i in found.implementations if _folder(name) in (i.folder.name.lower(), _place(i))]
        if within and name not in (*by_name, *RESERVED_NAMES):
            raise UsageError(f"{name} is a folder, which holds {', '.join(within)}: name these")
        if name not in (*by_name, *RESERVED_NAMES) and name in {i.folder.parent.name for i in found.implementations}:
            raise UsageError(f"{name} is a language's folder: select its implementations with --test-lang {name}")


def _meant(found: ScanResult, name: str) -> set[Path]:
    """Return the folders that a name may mean: by folder, or a broken one by its framework or a variant of it."""
    name = _folder(name)
    exact = {folder for each in found.folder_problems if name in each.names for folder in each.folders}
    exact |= {i.folder for i in found.implementations if name in (i.folder.name.lower(), _place(i))}
    variants = {
        folder
        for each in found.folder_problems
        if each.has_names and any(name.startswith(f"{framework}-") for framework in each.names)
        for folder in each.folders
    }
    return exact or variants


def _place(implementation: Implementation) -> str:
    """Its folder below the tree, in lower case: ``java/vertx-web``."""
    return "/".join(implementation.folder.parts[-2:]).lower()


def _folder(path: str) -> str:
    return path.removeprefix("./").removeprefix("frameworks/").strip("/").lower()


def _require_known(found: ScanResult, flag: str, names: Iterable[str], known: Collection[str]) -> None:
    """Raise UsageError for the first unknown name, with the files that could not be read and may hold it."""
    for name in sorted(names):
        if name in known:
            continue
        if known:
            hint = suggest(name, known)
        else:
            where = ", ".join(map(str, found.trees)) or "the selection"
            hint = f"{where} holds no implementations; expected <Language>/<name>/{CONFIG_FILE}"
        unread = [*found.problems[:MAX_SHOWN_PROBLEMS]]
        unread += (
            [f"and {len(found.problems) - MAX_SHOWN_PROBLEMS} more"] if len(found.problems) > MAX_SHOWN_PROBLEMS else []
        )
        raise UsageError("\n".join((f"{flag}unknown name {name!r}; {hint}", *unread)))
