"""The models of benchmark_config.json and the schema that is generated from them."""

import json

from harness.request.benchmark_config import SCHEMA_FILE, json_schema
from harness.request.discovery import scan


def test_the_schema_in_config_is_the_one_of_the_models() -> None:
    assert json.loads(SCHEMA_FILE.read_text()) == json_schema(), "run: python -m harness.request.benchmark_config"


def test_every_implementation_of_this_repository_is_valid() -> None:
    found = scan()
    assert found.problems == ()
    assert {"es4x", "express", "resteasy", "vertx-web"} <= {i.name for i in found.implementations}
