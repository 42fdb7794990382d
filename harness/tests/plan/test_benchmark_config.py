"""Tests for the models of benchmark_config.json and the schema generated from them."""

import json
from dataclasses import replace

import pytest
from pydantic import ValidationError

from harness.plan.benchmark_config import SCHEMA_FILE, TestEntry, json_schema
from harness.plan.discovery import scan_folders
from harness.plan.testtypes.registry import TEST_TYPES
from harness.tests.doubles.own import own_folders, own_implementations


def test_committed_schema_matches_the_models() -> None:
    assert json.loads(SCHEMA_FILE.read_text()) == json_schema(), "run: python -m harness.plan.benchmark_config"


def test_all_implementations_are_valid() -> None:
    scan = scan_folders()
    # Ignore contributed folders. Commands report them if they are broken.
    own = own_folders()
    assert [problem for problem in scan.problems if any(f"{folder}/" in problem for folder in own)] == []
    assert own == {one.folder for one in own_implementations()}
    assert {"es4x", "express", "resteasy", "vertx-web"} <= {i.name for i in scan.implementations}


def test_only_keys_of_test_types_are_urls(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = {"language": "C", "json_url": "/json", "greet_url": "/greet"}
    with pytest.raises(ValidationError, match="greet_url"):
        TestEntry.model_validate(entry)
    monkeypatch.setitem(TEST_TYPES, "greet", replace(TEST_TYPES["json"], name="greet"))
    assert TestEntry.model_validate(entry).urls == {"json_url": "/json", "greet_url": "/greet"}
    assert "greet_url" in json_schema()["$defs"]["TestEntry"]["properties"]
    with pytest.raises(ValidationError, match="should match pattern"):
        TestEntry.model_validate({**entry, "greet_url": "greet"})


def test_each_implementation_names_its_components() -> None:
    """A reader must see whether a rank is the framework's, or that of the driver or another component."""
    missing = {
        (each.name, key)
        for each in own_implementations()
        for key, needed in {
            "http_server": True,
            "concurrency": True,
            "database_driver": each.entry.database != "none",
            "json_library": "json" in each.urls,
            "template_engine": "fortune" in each.urls,
        }.items()
        if needed and getattr(each.entry, key) is None
    }
    assert missing == set()
