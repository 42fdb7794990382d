"""``python -m harness.dashboard.schema``: the JSON Schema of all documents; the TypeScript types are made from it."""

import json
from typing import Any

from pydantic.json_schema import models_json_schema

from harness.dashboard import documents

MODELS = [each for each in vars(documents).values() if getattr(each, "__module__", "") == documents.__name__]


def schema() -> dict[str, Any]:
    """One schema with every model as a definition, as they are written (a field with a default is always there)."""
    _, combined = models_json_schema([(model, "serialization") for model in MODELS], by_alias=False, title="Documents")
    for definition in combined["$defs"].values():
        if "properties" in definition:
            definition["required"] = list(definition["properties"])
    properties = {model.__name__: {"$ref": f"#/$defs/{model.__name__}"} for model in MODELS}
    return {**combined, "type": "object", "properties": properties, "additionalProperties": False}


if __name__ == "__main__":
    print(json.dumps(schema(), indent=1))
