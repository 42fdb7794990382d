"""The page's types are those of the Python models."""

import json
import re

from harness.dashboard.build import WEB
from harness.dashboard.documents import schema

TYPES = WEB / "src" / "documents.d.ts"


def test_the_committed_types_are_those_of_the_models() -> None:
    """Names, fields and nullability; `npm run types` writes them anew."""
    definitions = schema()["$defs"]
    assert isinstance(definitions, dict)
    text = TYPES.read_text(encoding="utf-8")
    for name, definition in definitions.items():
        if "properties" not in definition:
            assert f"export type {name} = " in text, f"{name}: run `npm run types` in {WEB}"
            continue
        match = re.search(rf"export interface {name} \{{\n(.*?)\n\}}", text, re.DOTALL)
        assert match, f"{name}: run `npm run types` in {WEB}"
        fields = dict(re.findall(r"^  (\w+\??): (.*)$", match[1], re.MULTILINE))
        assert list(fields) == list(definition["properties"]), f"{name}: run `npm run types` in {WEB}"
        nullable = {field for field, value in definition["properties"].items() if '"null"' in json.dumps(value)}
        simple = {field for field, value in fields.items() if not value.startswith("{")}
        assert {field for field in simple if "null" in fields[field]} == nullable & simple, name


def test_no_lock_file_names_where_packages_come_from() -> None:
    lock = json.loads((WEB / "package-lock.json").read_text(encoding="utf-8"))
    assert all("resolved" not in package for package in lock["packages"].values())
    assert all("integrity" in package for name, package in lock["packages"].items() if name)
