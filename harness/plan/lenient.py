"""Reads a benchmark_config.json from TechEmpower's tree and ignores invalid keys with a warning.

TechEmpower's toolset ignores unknown keys, and several hundred folders rely on that. A file with a ``local`` block was
written for tfb, so every invalid key or value in the file is an error.
"""

from collections.abc import Mapping
from functools import cache

from pydantic import ValidationError

from harness.errors import ConfigError
from harness.plan.benchmark_config import NAME, BenchmarkConfig, TestEntry, json_schema
from harness.plan.profile import Model
from harness.plan.suggestions import explain_violation, explain_violations, schema_keys, suggest

ANY_DATABASE = {"any_database": True}  # validation context that accepts databases tfb does not provide


def parse_leniently(document: object, *, folder: str, language: str) -> tuple[BenchmarkConfig, list[str], list[str]]:
    """Return (configuration, warnings about ignored keys, problems of unusable entries in ``tests``).

    The folder names ``folder`` and ``language`` are the defaults for the keys ``framework`` and ``language``. Raises
    ConfigError if no usable test remains.
    """
    if not isinstance(document, dict):
        raise ConfigError("the whole file: must be an object with framework and tests")
    listed = document.get("tests")
    groups = [listed] if isinstance(listed, dict) else listed if isinstance(listed, list) else []
    entries = [(str(name), raw) for group in groups if isinstance(group, dict) for name, raw in group.items()]
    if not entries:
        raise ConfigError("tests: must be a list of objects that map names to tests")
    strict = any(isinstance(raw, dict) and "local" in raw for _, raw in entries)
    tests: dict[str, TestEntry] = {}
    test_warnings: list[str] = []
    problems = []
    for variant, raw in entries:
        if not NAME.fullmatch(variant):
            problems.append(f"tests.{variant!r:.80}: invalid name: start with a letter or digit, and do not use /")
        elif variant in tests:
            problems.append(f"tests.{variant}: is defined twice; tfb uses the first definition")
        else:
            strict_path = f"tests.{variant}" if strict else None
            try:
                tests[variant], ignored = _validate_leniently(TestEntry, raw, {"language": language}, strict_path)
                test_warnings += [f"tests.{variant}.{warning}" for warning in ignored]
            except ConfigError as error:
                problems.append(f"{error}" if strict_path else f"tests.{variant}: {error}")
    if not tests:
        raise ConfigError("; ".join(problems))
    usable = {**document, "tests": [tests]}
    config, warnings = _validate_leniently(BenchmarkConfig, usable, {"framework": folder}, "" if strict else None)
    return config, [*warnings, *test_warnings], problems


def _validate_leniently(
    model: type[Model], raw: object, defaults: Mapping[str, str], strict_path: str | None
) -> tuple[Model, list[str]]:
    """Validate an object. Return the model and a warning for each ignored key. ``defaults`` supplies missing keys.

    If the object's path in the file is given as ``strict_path``, an invalid key raises ConfigError instead.
    """
    if not isinstance(raw, dict):
        raise ConfigError(f"{strict_path + ': ' if strict_path else ''}must be an object (found {raw!r:.40})")
    if strict_path is not None:
        return _validate_strictly(model, {**defaults, **raw}, strict_path), []
    entry: dict[str, object] = {**defaults, **{str(key): value for key, value in raw.items()}}
    warnings: dict[str, str] = {}
    while True:
        try:
            return model.model_validate(entry, context=ANY_DATABASE), list(warnings.values())
        except ValidationError as error:
            before = len(warnings)
            for violation in error.errors():
                # Errors from the validator of ``urls`` have no location.
                location = [str(part) for part in violation["loc"]] or ["urls"]
                key = location[-1] if location[0] == "urls" else location[0]
                explanation = explain_violation(violation, json_schema())
                if key not in entry or key in warnings:
                    continue
                value = entry.pop(key)
                if violation["type"] == "extra_forbidden":
                    suggestion = suggest(key, _known_keys() - {key})
                    warnings[key] = f"{key}: unknown key, ignored" + (
                        f"; {suggestion}" if suggestion.endswith("?") else ""
                    )
                else:
                    effect = f"replaced by {defaults[key]!r}" if key in defaults else "ignored"
                    warnings[key] = f"{key}: {explanation} (found {value!r:.40}), {effect}"
            if len(warnings) == before:
                missing = (violation["msg"].removeprefix("Value error, ") for violation in error.errors())
                raise ConfigError("; ".join((*missing, *warnings.values()))) from error
            entry = {**defaults, **entry}


def _validate_strictly(model: type[Model], entry: Mapping[str, object], key_path: str) -> Model:
    """Validate an object and return the model. Raises ConfigError for any invalid key or value."""
    try:
        return model.model_validate(entry)
    except ValidationError as error:
        raise ConfigError("; ".join(explain_violations(error, json_schema(), key_path))) from error


@cache
def _known_keys() -> set[str]:
    return schema_keys(json_schema())
