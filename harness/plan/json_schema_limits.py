"""Checks the JSON Schemas in configuration files: size, keywords, regular expressions and references.

Validating a document against an accepted schema can still take a long time. ``harness.verify.response_schemas``
therefore validates responses in a separate process.
"""

import contextlib
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from harness.errors import ConfigError

if TYPE_CHECKING:
    from jsonschema.protocols import Validator
    from referencing import Resource
    from referencing._core import Resolver

Schema = Mapping[str, Any]

MAX_VALUES = 20_000  # maximum number of values in a schema
MAX_DEPTH = 100  # maximum number of nested objects and arrays
MAX_MIXED_ENTRIES = 1_000  # a longer array must contain only strings or only numbers
MAX_PATTERN = 2_000  # maximum number of characters in a regular expression
REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
# Keywords with subschemas that validate the same value as the schema itself.
IN_PLACE_LISTS = ("allOf", "anyOf", "oneOf")
IN_PLACE = ("not", "if", "then", "else")


def check_schema(schema: Schema) -> None:
    """Check a schema without fetching remote references. Raises a ConfigError that names the invalid keyword."""
    _require_bounded(schema)
    _require_valid(schema)
    _SchemaWalker(schema).check()


def schema_validator(schema: Schema) -> "Validator":
    """Return a validator for a schema. Raises ConfigError if ``check_schema`` rejects the schema."""
    from referencing import Registry

    check_schema(schema)
    return _dialect(schema)(schema, registry=Registry())


def _dialect(schema: Schema) -> "type[Validator]":
    """Return the validator class of the schema's dialect. Raises ConfigError for an unknown dialect."""
    from jsonschema import validators

    dialect: Any = None
    no_default: Any = None  # typed as Any, because the type stubs do not allow None
    if "$schema" not in schema:
        dialect = validators.Draft202012Validator
    elif isinstance(schema["$schema"], str):
        with contextlib.suppress(ValueError):  # not a URL
            dialect = validators.validator_for({"$schema": schema["$schema"]}, default=no_default)
    if dialect is None:
        raise ConfigError(
            f"$schema: unknown dialect {schema['$schema']!r:.80}; use https://json-schema.org/draft/2020-12/schema"
        )
    result: type[Validator] = dialect
    return result


def _require_bounded(schema: object) -> None:
    """Raise ConfigError if a schema has too many values, too many levels, or a long array with mixed types."""
    stack: list[tuple[object, int]] = [(schema, 1)]
    values = 0
    while stack:
        value, depth = stack.pop()
        values += 1
        if depth > MAX_DEPTH:
            raise ConfigError(f"is nested more than {MAX_DEPTH} levels deep: move parts to $defs, and use $ref")
        children = list(value.values()) if isinstance(value, Mapping) else value
        if not isinstance(children, list | tuple):
            continue
        if values + len(stack) + len(children) > MAX_VALUES:
            raise ConfigError(f"contains more than {MAX_VALUES:,} values: split the schema among several requests")
        if isinstance(value, list) and len(value) > MAX_MIXED_ENTRIES and not _comparable(value):
            raise ConfigError(
                f"an array has more than {MAX_MIXED_ENTRIES:,} entries of different types: "
                "use only strings, or only numbers"
            )
        stack += [(child, depth + 1) for child in children]


def _comparable(values: Sequence[object]) -> bool:
    """Return whether all values are strings or all are numbers. Mixed arrays take quadratic time to validate."""
    kinds = {type(value) for value in values}
    return kinds <= {str} or kinds <= {int, float}


def _require_valid(schema: Schema) -> None:
    """Raise ConfigError if a keyword's value violates the dialect's meta-schema."""
    from jsonschema import FormatChecker
    from jsonschema.exceptions import SchemaError

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            dialect: Any = _dialect(schema)
            dialect.check_schema(schema, format_checker=FormatChecker(formats=()))
    except SchemaError as error:
        raise ConfigError(f"{error.json_path}: {error.message[:300]}") from error
    except RecursionError as error:
        raise ConfigError("is nested too deeply: move parts to $defs, and use $ref") from error


class _SchemaWalker:
    """A walker that visits each subschema and each referenced schema once."""

    def __init__(self, schema: Schema) -> None:
        from referencing.jsonschema import specification_with

        self.specification = specification_with(str(_dialect(schema).META_SCHEMA["$schema"]))
        self.root = self.specification.create_resource(schema)
        # id() of a schema -> subschemas that validate the same value
        self.in_place: dict[int, list[object]] = {}

    def check(self) -> None:
        """Raise ConfigError for an invalid regular expression, an unresolvable reference or infinite recursion."""
        from jsonschema_specifications import REGISTRY

        try:
            registry = REGISTRY.with_resource("", self.root).crawl()
            self._visit(registry.resolver_with_root(self.root))
        except ConfigError:
            raise
        except (LookupError, ValueError, TypeError, AttributeError, RecursionError) as error:
            raise ConfigError(f"cannot read the schema: {type(error).__name__}: {error}"[:300]) from error
        self._require_finite(self.root.contents)

    def _visit(self, resolver: "Resolver[Any]") -> None:
        stack = [(self.root, resolver)]
        while stack:
            resource, resolver = stack.pop()
            contents = resource.contents
            if not isinstance(contents, dict) or id(contents) in self.in_place:
                continue
            self.in_place[id(contents)] = [*_in_place(contents)]
            _require_patterns(contents)
            stack += [(inner, resolver.in_subresource(inner)) for inner in resource.subresources()]
            for keyword in REFERENCES:
                if isinstance(reference := contents.get(keyword), str):
                    stack.append(self._target(keyword, reference, resolver))
                    self.in_place[id(contents)].append(stack[-1][0].contents)

    def _target(self, keyword: str, reference: str, resolver: "Resolver[Any]") -> "tuple[Resource[Any], Resolver[Any]]":
        """Return the schema that a reference points to. Raises ConfigError if it is missing, remote or not a schema."""
        from referencing.exceptions import Unresolvable

        try:
            target = resolver.lookup(reference)
        except Unresolvable as error:
            where = "is remote, and tfb does not fetch schemas" if "://" in reference else "is not in the schema"
            raise ConfigError(
                f"{keyword}: {reference!r:.120} {where} (Unresolvable): put the referenced schema below $defs"
            ) from error
        if not isinstance(target.contents, dict | bool):
            raise ConfigError(f"{keyword}: {reference!r:.120} is not a schema: expected an object, true or false")
        if isinstance(target.contents, dict) and id(target.contents) not in self.in_place:
            _require_valid({**target.contents, "$schema": self.specification_id()})
        return self.specification.create_resource(target.contents), target.resolver

    def specification_id(self) -> str:
        """Return the URL of the schema's dialect."""
        return str(_dialect(self.root.contents).META_SCHEMA["$schema"])

    def _require_finite(self, root: object) -> None:
        """Raise ConfigError if schemas that validate the same value refer to each other in a cycle.

        Validation against such schemas would never end.
        """
        checked: set[int] = set()
        for start in [id(root), *self.in_place]:
            path: dict[int, Iterator[object]] = {start: iter(self.in_place.get(start, ()))}
            while path and start not in checked:
                current = next(reversed(path))
                inner = next(path[current], None)
                if inner is None:
                    checked.add(current)
                    del path[current]
                elif id(inner) in path:
                    raise ConfigError(
                        "$ref: a schema refers to itself for the same value, so validation would never "
                        "end: put the reference below properties or items"
                    )
                elif id(inner) not in checked:
                    path[id(inner)] = iter(self.in_place.get(id(inner), ()))


def _in_place(contents: Mapping[str, Any]) -> Iterator[object]:
    """Yield the subschemas that validate the same value as ``contents``."""
    for keyword in IN_PLACE_LISTS:
        if isinstance(inner := contents.get(keyword), list):
            yield from inner
    for keyword in IN_PLACE:
        if isinstance(inner := contents.get(keyword), dict):
            yield inner
    if isinstance(inner := contents.get("dependentSchemas"), dict):
        yield from inner.values()


def _require_patterns(contents: Mapping[str, Any]) -> None:
    """Raise ConfigError if Python's ``re`` rejects a regular expression."""
    patterns = [("pattern", contents.get("pattern"))]
    if isinstance(inner := contents.get("patternProperties"), dict):
        patterns += [("patternProperties", pattern) for pattern in inner]
    for keyword, pattern in patterns:
        if not isinstance(pattern, str):
            continue
        if len(pattern) > MAX_PATTERN:
            raise ConfigError(f"{keyword}: a regular expression has more than {MAX_PATTERN:,} characters: shorten it")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                re.compile(pattern)
        except (re.error, OverflowError, RecursionError) as error:
            raise ConfigError(
                f"{keyword}: {pattern!r:.80} is not a regular expression that Python accepts: {error}"
            ) from error
