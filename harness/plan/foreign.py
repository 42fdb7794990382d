"""Reads a benchmark_config.json of another tree as its own toolset would: what it does not need is set aside, and said.

TechEmpower's toolset reads the keys that it knows and looks past the others; four hundred folders are written for that.
A key or a value that we do not take is set aside here, one by one, with a warning, so that no file and no test is lost
for it. What is ours, the ``local`` block, is read as strictly as in our own tree: it can only have been written for us.
"""

from collections.abc import Mapping
from functools import cache

from pydantic import ValidationError

from harness.errors import ConfigError
from harness.plan.benchmark_config import NAME, BenchmarkConfig, TestEntry, json_schema
from harness.plan.profile import Model
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
    tests: dict[str, TestEntry] = {}
    of_tests: list[str] = []
    problems = []
    for variant, raw in entries:
        if not NAME.fullmatch(variant):
            problems.append(f"tests.{variant!r:.80}: no name: a letter or digit first, no separators of paths")
        elif variant in tests:
            problems.append(f"tests.{variant}: comes twice; the first one is taken")
        else:
            try:
                tests[variant], aside = _leniently(TestEntry, raw, {"language": language})
                of_tests += [f"tests.{variant}.{words}" for words in aside]
            except ConfigError as error:
                problems.append(f"tests.{variant}: {error}")
    if not tests:
        raise ConfigError("; ".join(problems))
    config, warnings = _leniently(BenchmarkConfig, {**document, "tests": [tests]}, {"framework": folder})
    return config, [*warnings, *of_tests], problems


def _leniently(model: type[Model], raw: object, usual: Mapping[str, str]) -> tuple[Model, list[str]]:
    """What a model makes of an object, and what was set aside of that; raises ConfigError for too little.

    ``usual``: what is taken of keys that have to be there and are not, or hold nothing of use.
    """
    if not isinstance(raw, dict):
        raise ConfigError(f"should be an object (found {raw!r:.40})")
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
                said = PLAIN.get(violation["type"], violation["msg"]).removeprefix("Value error, ")
                if key == "local":
                    raise ConfigError(
                        f"{'.'.join(location)}: {said} (found {violation['input']!r:.60}); a local block is ours, none "
                        "of it is set aside"
                    ) from error
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
                raise ConfigError("; ".join(v["msg"].removeprefix("Value error, ") for v in error.errors())) from error
            entry = {**usual, **entry}


@cache
def _known() -> set[str]:
    return keys_of(json_schema())
