"""Reads a benchmark_config.json of another tree as its own toolset would: invalid keys are set aside with a warning.

TechEmpower's toolset ignores keys that it does not know, and four hundred folders are written for that. An invalid key
or value is therefore set aside, so that no file and no test is lost for it. A file with a ``local`` block was written
for tfb: there, every invalid key or value is an error, as in our own tree.
"""

from collections.abc import Mapping
from functools import cache

from pydantic import ValidationError

from harness.errors import ConfigError
from harness.plan.benchmark_config import NAME, BenchmarkConfig, TestEntry, json_schema
from harness.plan.profile import Model
from harness.plan.suggestions import explain_violation, explain_violations, schema_keys, suggest

ANY_DATABASE = {"any_database": True}  # context of the validation: one that is not served is named, not refused


def parse_leniently(document: object, *, folder: str, language: str) -> tuple[BenchmarkConfig, list[str], list[str]]:
    """Return what could be read of a parsed file, warnings for keys that were set aside, and unusable tests.

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
    strict = any(isinstance(raw, dict) and "local" in raw for _, raw in entries)
    tests: dict[str, TestEntry] = {}
    of_tests: list[str] = []
    problems = []
    for variant, raw in entries:
        if not NAME.fullmatch(variant):
            problems.append(f"tests.{variant!r:.80}: no name: a letter or digit first, no separators of paths")
        elif variant in tests:
            problems.append(f"tests.{variant}: comes twice; the first one is taken")
        else:
            at = f"tests.{variant}" if strict else None
            try:
                tests[variant], aside = _leniently(TestEntry, raw, {"language": language}, at)
                of_tests += [f"tests.{variant}.{words}" for words in aside]
            except ConfigError as error:
                problems.append(f"{error}" if at else f"tests.{variant}: {error}")
    if not tests:
        raise ConfigError("; ".join(problems))
    whole = {**document, "tests": [tests]}
    config, warnings = _leniently(BenchmarkConfig, whole, {"framework": folder}, "" if strict else None)
    return config, [*warnings, *of_tests], problems


def _leniently(
    model: type[Model], raw: object, usual: Mapping[str, str], strict: str | None
) -> tuple[Model, list[str]]:
    """Return an object as its model, and a warning for each key that was set aside.

    ``usual`` has values for required keys that are missing or invalid. ``strict`` is the object's path in a file of
    which nothing is set aside, otherwise None. Raises ConfigError where too little is left, or where anything in a
    strict object is invalid.
    """
    if not isinstance(raw, dict):
        raise ConfigError(f"{strict + ': ' if strict else ''}should be an object (found {raw!r:.40})")
    if strict is not None:
        return _strictly(model, {**usual, **raw}, strict), []
    entry: dict[str, object] = {**usual, **{str(key): value for key, value in raw.items()}}
    warnings: dict[str, str] = {}
    while True:
        try:
            return model.model_validate(entry, context=ANY_DATABASE), list(warnings.values())
        except ValidationError as error:
            before = len(warnings)
            for violation in error.errors():
                location = [str(part) for part in violation["loc"]] or ["urls"]  # the model's own gathering of them
                key = location[-1] if location[0] == "urls" else location[0]
                said = explain_violation(violation, json_schema())
                if key not in entry or key in warnings:
                    continue
                found = entry.pop(key)
                if violation["type"] == "extra_forbidden":
                    near = suggest(key, _known() - {key})
                    warnings[key] = f"{key}: unknown key, set aside" + (f"; {near}" if near.endswith("?") else "")
                else:
                    instead = f"taken to be {usual[key]!r}" if key in usual else "set aside"
                    warnings[key] = f"{key}: {said} (found {found!r:.40}), {instead}"
            if len(warnings) == before:
                missing = (violation["msg"].removeprefix("Value error, ") for violation in error.errors())
                raise ConfigError("; ".join((*missing, *warnings.values()))) from error
            entry = {**usual, **entry}


def _strictly(model: type[Model], entry: Mapping[str, object], within: str) -> Model:
    """Return an object as its model; raises ConfigError for any invalid key or value."""
    try:
        return model.model_validate(entry)
    except ValidationError as error:
        raise ConfigError("; ".join(explain_violations(error, json_schema(), within))) from error


@cache
def _known() -> set[str]:
    return schema_keys(json_schema())
