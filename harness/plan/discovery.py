"""Finds implementations by their files frameworks/<Language>/<name>/benchmark_config.json."""

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

MISPLACED = "is in the place of a language's folder; move it to <Language>/<name>/"
MAX_SHOWN_PROBLEMS = 5  # number of broken files listed in a message about an unknown name
RESERVED_NAMES = ("run", "all")  # "run" selects the core implementations, "all" selects all
Rules = Literal["tfb", "techempower"]


@dataclass(frozen=True, kw_only=True)
class Implementation:
    """An entry of a benchmark_config.json."""

    name: str  # the framework's name, or framework-variant
    variant: str  # "default" or the variant's name
    framework: str
    folder: Path
    maintainers: tuple[str, ...]
    entry: TestEntry
    rules: Rules = "tfb"  # rule set of verification
    allowed: tuple[str, ...] = ()  # privileges that the user granted to the container
    ready: str | None = None  # path for readiness checks; None: the path of the first test type
    ready_at_200: bool = True  # True: readiness requires status 200; False: any status below 500
    requests: Mapping[str, TestType] = field(default_factory=dict)  # test types that a service declares

    @property
    def is_service(self) -> bool:
        """True for a service from a tfb.toml, which declares the requests."""
        return bool(self.requests)

    @cached_property
    def test_types(self) -> Mapping[str, TestType]:
        """Test types by name, in the order of measurement: declared requests, or all registered types with a URL."""
        return self.requests or {t.name: t for t in TEST_TYPES.values() if self.entry.urls.get(t.url_key)}

    @cached_property
    def urls(self) -> Mapping[str, str]:
        """Test type name -> URL path, in the order of measurement."""
        return {
            name: kind.requests[0].target if kind.requests else self.entry.urls[kind.url_key]
            for name, kind in self.test_types.items()
        }

    @property
    def ready_path(self) -> str:
        """Path for readiness checks. If the path ends with a number of rows, the check requests a single row."""
        if self.ready:
            return self.ready
        name, url = next(iter(self.urls.items()))
        test_type = self.test_types[name]
        return f"{url}1" if test_type.counts_rows else test_type.target(url)

    @property
    def is_broken(self) -> bool:
        """True if the implementation is tagged as broken. Broken implementations never run."""
        return "broken" in (tag.lower() for tag in self.entry.tags)

    @property
    def is_core(self) -> bool:
        """True if ``--test run`` selects the implementation."""
        return CORE_TAG in (tag.lower() for tag in self.entry.tags)

    @property
    def declared_name(self) -> str:
        """The name in the configuration file. In a run, ``name`` may have an additional suffix."""
        return self.framework if self.variant == "default" else f"{self.framework}-{self.variant}"

    @property
    def dockerfile(self) -> Path:
        """Path of the implementation's Dockerfile."""
        return self.folder / (self.entry.dockerfile or f"{self.declared_name}.dockerfile")

    @property
    def unsupported_reason(self) -> str | None:
        """Why the implementation cannot run: it requires a database that tfb does not provide. None if it can run."""
        database = self.entry.database
        if database in ("postgres", "none"):
            return None
        name = {"mysql": "MySQL", "mongodb": "MongoDB"}.get(database, database)
        return f"requires {name}, but tfb provides only PostgreSQL: add a variant that declares no database"

    @property
    def local(self) -> LocalRun | None:
        """Commands that run the implementation without Docker, if declared."""
        return self.entry.local

    @property
    def stack(self) -> str:
        """Language, platform, web server and framework in lower case, used to recognise JIT compilers."""
        words = (self.entry.language, self.entry.platform, self.entry.webserver, self.framework)
        return " ".join(word for word in words if word).lower()

    @property
    def digest(self) -> str:
        """Hash of the configuration: commands, URLs, environment and all other keys."""
        config = self.entry.model_dump_json() + json.dumps(dict(self.entry.urls), sort_keys=True)
        return hashlib.sha256(config.encode()).hexdigest()[:16]

    def info(self, build: BuildRecord | None = None) -> ImplementationInfo:
        """Return the implementation's record for run.json."""
        shared = ImplementationInfo.model_fields.keys() & TestEntry.model_fields.keys()
        values = {key: getattr(self.entry, key) for key in shared}
        is_own = self.folder.is_relative_to(REPOSITORY)
        relative = self.folder.relative_to(REPOSITORY if is_own else self.folder.parent.parent)
        derived = {
            "name": self.name,
            "framework": self.entry.framework or self.framework,
            "project": self.framework,
            "folder": relative.as_posix(),
            "rules": self.rules,
            "allowed": self.allowed,
            "display_name": self.entry.display_name or self.name,
            "maintainers": self.maintainers,
            "test_types": tuple(self.urls),
            "digest": self.digest,
            "build": build,
        }
        return ImplementationInfo.model_validate({k: v for k, v in (values | derived).items() if v is not None})


@dataclass(frozen=True, kw_only=True)
class ScanResult:
    """The implementations found in trees, and the problems with their folders."""

    implementations: tuple[Implementation, ...] = ()
    folder_problems: tuple[FolderProblem, ...] = ()
    named: frozenset[Path] = frozenset()  # folders of implementations that the user named directly
    trees: tuple[Path, ...] = ()

    @property
    def problems(self) -> tuple[str, ...]:
        """A message for each broken file or test."""
        return tuple(str(each) for each in self.folder_problems if each.kind == "problem")

    @property
    def warnings(self) -> tuple[str, ...]:
        """A message for each ignored key in other trees."""
        return tuple(str(each) for each in self.folder_problems if each.kind == "warning")

    def problems_of(self, folders: Collection[Path]) -> list[FolderProblem]:
        """Return the problems that affect any of the folders."""
        return [each for each in self.folder_problems if not each.folders.isdisjoint(folders)]


def scan_folders(*folders: Path) -> ScanResult:
    """Read all configurations below the folders, and report broken configurations as problems.

    The default is this repository's tree. In other trees, invalid keys are ignored (``harness.plan.lenient``). If two
    trees have an implementation with the same name, the later implementation gets a suffix: ``vertx-web@other``.
    """
    implementations: dict[str, Implementation] = {}
    problems: list[FolderProblem] = []
    named: set[Path] = set()
    seen: set[Path] = set()
    found_trees = [trees.find_tree(folder) for folder in folders or (FRAMEWORKS,)]
    for tree in found_trees:
        earlier_names = frozenset(implementations)
        problems += [folder_problem("misplaced", folder, MISPLACED) for folder in tree.misplaced()]
        for folder in tree.folders():
            if folder.resolve() in seen:  # two folders overlap
                continue
            seen.add(folder.resolve())
            read, folder_problems = _read_folder(folder, lenient=not is_own_tree(tree.root))
            problems += folder_problems
            if folder == tree.part:
                named.add(folder)
            for each in read:
                is_taken = each.name in earlier_names
                implementation = replace(each, name=f"{each.name}@{_label(tree.root)}") if is_taken else each
                if conflict := _name_conflict(implementation, each.name, implementations):
                    problems.append(conflict)
                else:
                    implementations[implementation.name] = implementation
    return ScanResult(
        implementations=tuple(sorted(implementations.values(), key=lambda i: i.name)),
        folder_problems=tuple(problems),
        named=frozenset(named),
        trees=tuple(tree.part for tree in found_trees),
    )


def _read_folder(folder: Path, *, lenient: bool) -> tuple[tuple[Implementation, ...], list[FolderProblem]]:
    """Return the implementations in a folder, and the folder's problems."""
    path = folder / CONFIG_FILE
    try:
        path.lstat()
    except FileNotFoundError:
        return (), list(missing_config_problems(folder))
    except OSError as error:
        return (), [folder_problem("problem", folder, f"cannot be read: {error.strerror}")]
    try:
        implementations, warnings, problems = read_config(path, lenient=lenient)
    except ConfigError as error:
        return (), [folder_problem("problem", folder, str(error).removeprefix(f"{path}: "))]
    return implementations, [
        *(folder_problem("warning", folder, message) for message in warnings),
        *(folder_problem("problem", folder, message) for message in problems),
    ]


def _name_conflict(
    implementation: Implementation, own_name: str, others: Mapping[str, Implementation]
) -> FolderProblem | None:
    """Return a problem if an implementation's name is reserved or already used."""
    folder = implementation.folder
    if own_name in RESERVED_NAMES:
        return folder_problem("problem", folder, f"the name {own_name!r} is reserved: choose a different name")
    if other := others.get(implementation.name):
        message = (
            f"the name {implementation.name!r} is already used by {other.folder / CONFIG_FILE}; change framework, or "
            "the key of the variant in tests, in one of the two files"
        )
        return folder_problem("problem", folder, message, other.folder)
    return None


def is_own_tree(tree: Path) -> bool:
    """Return whether a tree belongs to this repository, possibly in a different worktree."""
    return tree == FRAMEWORKS or ((tree.parent / "harness").is_dir() and (tree.parent / "tfb").is_file())


def _label(tree: Path) -> str:
    return tree.parent.name if tree.name == "frameworks" else tree.name


def read_config(path: Path, *, lenient: bool = False) -> tuple[tuple[Implementation, ...], list[str], list[str]]:
    """Return the implementations of a configuration file, warnings, and problems. Strict reading returns no messages.

    Raises ConfigError that names the file and the key.
    """
    with name_file_in_errors(path, json_schema):
        document = safe_read.parse_json(_text(safe_read.read(path, MAX_CONFIG_BYTES)))
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
            # Antipatterns violate tfb's rules on purpose. Under TechEmpower's rules, these violations are warnings.
            rules="techempower" if lenient or ANTIPATTERN_TAG in entry.tags else "tfb",
        )
        for tests in config.tests
        for variant, entry in tests.items()
    )
    return implementations, warnings, problems


def _text(data: bytes) -> bytes:
    """Return the content of a configuration unchanged. Raises ValueError if it is empty or not text."""
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"is not UTF-8 at byte {error.start + 1}; save it as UTF-8") from error
    if not data.strip():
        raise ValueError("is empty; expected an object with framework and tests (./tfb new writes one)")
    return safe_read.require_no_nul(data)


ANTIPATTERN_TAG = "antipattern"  # marks implementations that demonstrate the cost of a mistake
CORE_TAG = "core"  # marks implementations that ``--test run`` selects


@dataclass(frozen=True, kw_only=True)
class Selection:
    """Implementations selected by flags; an empty flag does not restrict the selection."""

    test: tuple[str, ...] = ()  # names of implementations, "run" (core) or "all"
    test_dir: tuple[str, ...] = ()  # Language/folder, or a language's folder
    test_lang: tuple[str, ...] = ()
    tag: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()


def select_implementations(found: ScanResult, wanted: Selection) -> tuple[Implementation, ...]:
    """Return the selected implementations. Broken implementations are excluded.

    Raises:
        ConfigError: The folder of a named implementation has a problem.
        UsageError: A name is unknown. The message suggests similar names.
    """
    implementations = found.implementations
    by_name = {i.name: i for i in implementations}
    languages, folders = {lang.lower() for lang in wanted.test_lang}, {_folder(name) for name in wanted.test_dir}
    tags = {tag.lower() for tag in wanted.tag}
    known_languages = {i.folder.parent.name.lower() for i in implementations}
    known_languages |= {t.path.parent.parent.name.lower() for t in found.folder_problems if t.kind == "problem"}
    require_selected_valid(found, wanted)
    _require_known(found, "", {*wanted.test} - {*RESERVED_NAMES}, by_name)
    broken = {name for each in found.folder_problems for name in each.names}
    _require_known(found, "--exclude: ", {name for name in wanted.exclude if name.lower() not in broken}, by_name)
    _require_known(found, "--test-lang: ", languages, known_languages)
    _require_known(found, "--test-dir: ", folders, {_place(i) for i in implementations} | known_languages)
    _require_known(found, "--tag: ", tags, {tag.lower() for i in implementations for tag in i.entry.tags})

    core = {i.name for i in implementations if i.is_core} or {*by_name}  # all, if no implementation has the tag
    takes_core = "run" in wanted.test or not (wanted.test or languages or folders or tags)

    def named(i: Implementation) -> bool:
        if "all" in wanted.test or i.name in wanted.test or (takes_core and i.name in core):
            return True
        language = i.folder.parent.name.lower()
        return language in languages | folders or _place(i) in folders or any(t.lower() in tags for t in i.entry.tags)

    return tuple(i for i in implementations if named(i) and i.name not in wanted.exclude and not i.is_broken)


def require_selected_valid(found: ScanResult, wanted: Selection) -> None:
    """Check that the folders named by a selection have no problems.

    Raises:
        ConfigError: A named folder has a problem.
        UsageError: A name refers to a folder instead of an implementation.
    """
    by_name = {i.name: i for i in found.implementations}
    named = set(found.named)
    for name in {*wanted.test} - {*RESERVED_NAMES}:
        named |= {by_name[name].folder} if name in by_name else _meant(found, name)
    valid = {_place(i) for i in found.implementations}
    for place in map(_folder, wanted.test_dir):
        named |= {i.folder for i in found.implementations if _place(i) == place}
        named |= _meant(found, place) if place not in valid else set()
    if troubles := found.problems_of(named):
        messages = [str(each).removesuffix(", ignored") for each in troubles]
        if any(each.kind == "warning" for each in troubles):
            messages.append("correct or remove these keys: tfb ignores them only if no flag names the folder")
        raise ConfigError("\n".join(messages))
    for name in wanted.test:
        within = [i.name for i in found.implementations if _folder(name) in (i.folder.name.lower(), _place(i))]
        if within and name not in (*by_name, *RESERVED_NAMES):
            raise UsageError(f"{name} is a folder with the implementations {', '.join(within)}: use their names")
        if name not in (*by_name, *RESERVED_NAMES) and name in {i.folder.parent.name for i in found.implementations}:
            raise UsageError(f"{name} is a language's folder: select its implementations with --test-lang {name}")


def _meant(found: ScanResult, name: str) -> set[Path]:
    """Return the folders that a name may refer to. Broken folders match by the name of their framework or variant."""
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
    """Return the folder relative to the tree in lower case, for example ``java/vertx-web``."""
    return "/".join(implementation.folder.parts[-2:]).lower()


def _folder(path: str) -> str:
    return path.removeprefix("./").removeprefix("frameworks/").strip("/").lower()


def _require_known(found: ScanResult, flag: str, names: Iterable[str], known: Collection[str]) -> None:
    """Raise UsageError for the first unknown name. The message lists broken files because they may define the name."""
    for name in sorted(names):
        if name in known:
            continue
        if known:
            hint = suggest(name, known)
        else:
            where = ", ".join(map(str, found.trees)) or "the selection"
            hint = f"{where} contains no implementations; expected <Language>/<name>/{CONFIG_FILE}"
        unread = [*found.problems[:MAX_SHOWN_PROBLEMS]]
        unread += (
            [f"and {len(found.problems) - MAX_SHOWN_PROBLEMS} more"] if len(found.problems) > MAX_SHOWN_PROBLEMS else []
        )
        raise UsageError("\n".join((f"{flag}unknown name {name!r}; {hint}", *unread)))
