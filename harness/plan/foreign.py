"""Reads a benchmark_config.json of another tree as its own toolset would: what it does not need is set aside, and said.

TechEmpower's toolset reads the keys that it knows and looks past the others; four hundred folders are written for that.
A key or a value that we do not take is set aside here, one by one, with a warning, so that no file and no test is lost
for it. What is ours, the ``local`` block, is read as strictly as in our own tree: it can only have been written for us;
and so is the type of every value beside it, or where the test was asked for by name.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import BaseModel, ValidationError

from harness.errors import ConfigError
from harness.plan.benchmark_config import NAME, NAME_LENGTH, BenchmarkConfig, TestEntry, known_keys, url_keys
from harness.plan.words import PLAIN, suggest

ANY_DATABASE = {"any_database": True}  # context of the validation: one that is not served is named, not refused


@dataclass(frozen=True, kw_only=True)
class Foreign:
    """What could be read of a file: the framework's name, each test by its variant, and what was set aside."""

    framework: str
    maintainers: tuple[str, ...]
    tests: tuple[tuple[str, TestEntry], ...]
    warnings: tuple[str, ...]
    mistyped: Mapping[str, tuple[str, ...]]  # of those warnings, by variant: values of a wrong type
    problems: tuple[str, ...]  # tests that cannot be used at all


def tolerate(document: object, *, folder: str, language: str) -> Foreign:
    """Read a parsed file; ``folder`` and ``language`` (names of the folders) stand in for names that it lacks.

    Raises ConfigError for a document that holds no tests.
    """
    if not isinstance(document, dict):
        raise ConfigError("the whole file: should be an object with framework and tests")
    entries = _entries(document.get("tests"))
    if not entries:
        raise ConfigError("tests: should be a list of objects, each a name and what its test is")
    warnings = [
        f"{key}: unknown key, set aside; {suggest(key, known_keys(BenchmarkConfig))}"
        for key in document
        if key not in BenchmarkConfig.model_fields
    ]
    framework = document.get("framework")
    if not isinstance(framework, str) or not _is_name(framework):
        warnings.append(f"framework: no name (found {framework!r:.40}), taken to be {folder!r}")
        framework = folder
    maintainers = document.get("maintainers", [])
    if not isinstance(maintainers, list) or not all(isinstance(name, str) for name in maintainers):
        warnings.append("maintainers: should be a list of names, set aside")
        maintainers = []
    tests: dict[str, TestEntry] = {}
    mistyped: dict[str, tuple[str, ...]] = {}
    problems = []
    for variant, raw in entries:
        if not _is_name(variant):
            problems.append(f"tests.{variant!r:.80}: no name: a letter or digit first, no separators of paths")
            continue
        if variant in tests:
            problems.append(f"tests.{variant}: comes twice; the first one is taken")
            continue
        try:
            tests[variant], found, wrong = _test(raw, language)
        except ConfigError as error:
            problems.append(f"tests.{variant}: {error}")
            continue
        warnings += [f"tests.{variant}.{words}" for words in found]
        mistyped[variant] = tuple(f"tests.{variant}.{one}" for one in wrong)
    return Foreign(
        framework=framework,
        maintainers=tuple(maintainers),
        tests=tuple(tests.items()),
        warnings=tuple(warnings),
        mistyped=mistyped,
        problems=tuple(problems),
    )


def _is_name(text: str) -> bool:
    return bool(NAME.fullmatch(text)) and len(text) <= NAME_LENGTH


def _entries(tests: object) -> list[tuple[str, object]]:
    """(variant, raw entry) of every test, from a list of objects or from one object."""
    groups = [tests] if isinstance(tests, dict) else tests if isinstance(tests, list) else []
    return [(str(variant), raw) for group in groups if isinstance(group, dict) for variant, raw in group.items()]


def _test(raw: object, language: str) -> tuple[TestEntry, list[str], list[str]]:
    """A test, what was set aside of it, and values of a wrong type among that; raises ConfigError for too little."""
    if not isinstance(raw, dict):
        raise ConfigError(f"should be an object (found {raw!r:.40})")
    entry = {str(key): value for key, value in raw.items()}
    warnings, mistyped = [], list[str]()
    if not isinstance(entry.get("language"), str):
        warnings.append(f"language: no name (found {entry.get('language')!r:.40}), taken to be {language!r}")
        entry["language"] = language
    if entry.pop("urls", None) is not None:  # the model's own gathering of them, and no key of a file
        warnings.append("urls: unknown key, set aside")
    for _ in range(len(entry) + 1):  # each turn sets at least one key aside
        try:
            return TestEntry.model_validate(entry, context=ANY_DATABASE), warnings, mistyped
        except ValidationError as error:
            aside, wrong = _set_aside(entry, error)
            if wrong and entry.get("local") is not None:
                raise ConfigError("; ".join(wrong)) from error
            if not aside:
                raise ConfigError("; ".join(v["msg"].removeprefix("Value error, ") for v in error.errors())) from error
            warnings += aside
            mistyped += wrong
    raise ConfigError("cannot be read")


def _set_aside(entry: dict[str, object], error: ValidationError) -> tuple[list[str], list[str]]:
    """Take the keys out that a validation objected to: a warning each, and those whose value has a wrong type.

    Raises ConfigError for what is in the local block.
    """
    warnings: dict[str, str] = {}
    mistyped = []
    for violation in error.errors():
        location = [str(part) for part in violation["loc"]]
        key = location[1] if location[:1] == ["urls"] and len(location) > 1 else (location or [""])[0]
        expected = PLAIN.get(violation["type"], violation["msg"])
        if key == "local":
            raise ConfigError(
                f"{'.'.join(location)}: {expected} (found {violation['input']!r:.60}); a local block is ours, none of "
                "it is set aside"
            )
        if key not in entry or key in warnings:
            continue
        told = f"{key}: {expected} (found {entry[key]!r:.40})"
        if violation["type"] == "extra_forbidden":
            near = suggest(key, known_keys(TestEntry))
            told = f"{key}: unknown key, set aside" + (f"; {near}" if near.endswith("?") else "")
        elif violation["type"].endswith(("_type", "_parsing")):
            mistyped.append(told)
        warnings[key] = told if "set aside" in told else f"{told}; taken as {_default(TestEntry, key)}"
    for key in warnings:
        del entry[key]
    return list(warnings.values()), mistyped


def _default(model: type[BaseModel], key: str) -> str:
    """What a key means that is not there, in words."""
    if key in url_keys():
        return "no URL: the test type is not run"
    field = model.model_fields.get(key)
    return "not given" if field is None or field.default in (None, ()) else repr(field.default)


def lacking(database: str, urls: Mapping[str, str]) -> str | None:
    """What a test needs that is not served here, in words; None where nothing is missing."""
    if database in SERVED:
        return None
    name = NAMES.get(database, database)
    words = (
        f"asks for {name}, and only PostgreSQL is served: it would need a {name} with the tables of toolset/database"
    )
    if "json" in urls or "plaintext" in urls:
        words += ", or a variant of it that declares no database"
    return words


SERVED = ("postgres", "none")
NAMES = {"mysql": "MySQL", "mongodb": "MongoDB"}
