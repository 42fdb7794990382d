"""Reads a benchmark_config.json of another tree as its own toolset would: what it does not need is set aside, and said.

TechEmpower's toolset reads the keys that it knows and looks past the others; four hundred folders are written for that.
A key or a value that we do not take is set aside here, one by one, with a warning, so that no file and no test is lost
for it. What is ours, the ``local`` block, is read as strictly as in our own tree: it can only have been written for us.
"""

from pydantic import ValidationError

from harness.errors import ConfigError
from harness.plan.benchmark_config import NAME, BenchmarkConfig, TestEntry, json_schema
from harness.plan.words import PLAIN, keys_of, suggest

ANY_DATABASE = {"any_database": True}  # context of the validation: one that is not served is named, not refused


def tolerate(document: object, *, folder: str, language: str) -> tuple[BenchmarkConfig, list[str], list[str]]:
    """What could be read of a parsed file, a warning for all that was set aside, and tests that cannot be used.

    ``folder`` and ``language`` (names of the folders) stand in for names that it lacks. Raises ConfigError for a
    document that holds no tests.
    """
    if not isinstance(document, dict):
        raise ConfigError("the whole file: should be an object with framework and tests")
    found = document.get("tests")
    groups = [found] if isinstance(found, dict) else found if isinstance(found, list) else []
    entries = [(str(name), raw) for group in groups if isinstance(group, dict) for name, raw in group.items()]
    if not entries:
        raise ConfigError("tests: should be a list of objects, each a name and what its test is")
    warnings = [
        f"{key}: unknown key, set aside; {suggest(key, BenchmarkConfig.model_fields)}"
        for key in document
        if key not in BenchmarkConfig.model_fields
    ]
    framework = document.get("framework")
    if not isinstance(framework, str) or not NAME.fullmatch(framework):
        warnings.append(f"framework: no name (found {framework!r:.40}), taken to be {folder!r}")
        framework = folder
    maintainers = document.get("maintainers", [])
    if not isinstance(maintainers, list) or not all(isinstance(name, str) for name in maintainers):
        warnings.append("maintainers: should be a list of names, set aside")
        maintainers = []
    tests: dict[str, TestEntry] = {}
    problems = []
    for variant, raw in entries:
        if not NAME.fullmatch(variant):
            problems.append(f"tests.{variant!r:.80}: no name: a letter or digit first, no separators of paths")
        elif variant in tests:
            problems.append(f"tests.{variant}: comes twice; the first one is taken")
        else:
            try:
                tests[variant], aside = _test(raw, language)
                warnings += [f"tests.{variant}.{words}" for words in aside]
            except ConfigError as error:
                problems.append(f"tests.{variant}: {error}")
    config = BenchmarkConfig.model_construct(framework=framework, maintainers=tuple(maintainers), tests=(tests,))
    return config, warnings, problems


def _test(raw: object, language: str) -> tuple[TestEntry, list[str]]:
    """A test, and what was set aside of it; raises ConfigError for too little."""
    if not isinstance(raw, dict):
        raise ConfigError(f"should be an object (found {raw!r:.40})")
    entry = {str(key): value for key, value in raw.items()}
    warnings = []
    if not isinstance(entry.get("language"), str):
        warnings.append(f"language: no name (found {entry.get('language')!r:.40}), taken to be {language!r}")
        entry["language"] = language
    if entry.pop("urls", None) is not None:  # the model's own gathering of them, and no key of a file
        warnings.append("urls: unknown key, set aside")
    while True:
        try:
            return TestEntry.model_validate(entry, context=ANY_DATABASE), warnings
        except ValidationError as error:
            aside = _set_aside(entry, error)
            if not aside:
                raise ConfigError("; ".join(v["msg"].removeprefix("Value error, ") for v in error.errors())) from error
            warnings += aside


def _set_aside(entry: dict[str, object], error: ValidationError) -> list[str]:
    """Take out the keys that a validation objected to, a warning each; raises ConfigError for the local block."""
    warnings: dict[str, str] = {}
    for violation in error.errors():
        location = [str(part) for part in violation["loc"]] or [""]
        key = location[-1] if location[0] == "urls" else location[0]
        said = PLAIN.get(violation["type"], violation["msg"])
        if key == "local":
            raise ConfigError(
                f"{'.'.join(location)}: {said} (found {violation['input']!r:.60}); a local block is ours, none of it "
                "is set aside"
            )
        if key in entry and key not in warnings:
            if violation["type"] == "extra_forbidden":
                near = suggest(key, keys_of(json_schema()) - {key})
                warnings[key] = f"{key}: unknown key, set aside" + (f"; {near}" if near.endswith("?") else "")
            else:
                warnings[key] = f"{key}: {said} (found {entry[key]!r:.40}), set aside"
    for key in warnings:
        del entry[key]
    return list(warnings.values())
