"""``./tfb import``: a folder of another tree becomes one of ours, with what differs listed."""

import json
from pathlib import Path

import pytest

from harness.cli.importing import NOTES, bring
from harness.errors import ConfigError, UsageError
from harness.plan.discovery import read

ENTRY = {"language": "Go", "json_url": "/json", "port": 8080}


def folder(root: Path, **tests: object) -> Path:
    source = root / "theirs" / "frameworks" / "Go" / "swift"
    source.mkdir(parents=True)
    document = {"framework": "swift", "tests": [tests or {"default": ENTRY}]}
    (source / "benchmark_config.json").write_text(json.dumps(document))
    (source / "go.mod").write_text("module swift\n")
    (source / "main.go").write_text('dsn := "postgres://tfb-database"; listen(":8080")\n')
    (source / "swift.dockerfile").write_text('FROM golang:1.24\nRUN go build\nCMD ["./swift", "-x"]\n')
    (root / "theirs" / "LICENSE").write_text(
        "Redistribution and use in source and binary forms. Neither the name of x\n"
    )
    return source


def test_the_copy_is_one_of_ours_with_a_local_block_begun(tmp_path: Path) -> None:
    source = folder(
        tmp_path, default={**ENTRY, "sleep": 1, "classification": "None"}, fast={**ENTRY, "database": "MySQL"}
    )
    target, notes = bring(source, tmp_path / "ours")
    (found,) = read(target / "benchmark_config.json")
    assert found.local is not None
    assert (found.name, found.local.run, dict(found.local.requires)) == ("swift", ("./swift", "-x"), {"go": ">=1.22"})
    text = "\n".join(notes)
    for words in (
        "licence: BSD-3-Clause, by LICENSE of the tree it comes from",
        "sleep: unknown key",
        "left out",
    ):
        assert words in text
    assert "the database's name is written into main.go" in text
    assert "8080 is written into" in text
    assert "base images: golang:1.24" in text
    assert (target / NOTES).read_text().count("\n- ") == len(notes)


def test_under_another_name_it_still_finds_its_dockerfile(tmp_path: Path) -> None:
    target, _ = bring(folder(tmp_path, default=ENTRY, raw=ENTRY), tmp_path / "ours", "quick")
    names = {i.name: i.dockerfile.name for i in read(target / "benchmark_config.json")}
    assert names == {"quick": "swift.dockerfile", "quick-raw": "swift-raw.dockerfile"}


def test_a_name_that_is_taken_and_a_folder_that_cannot_be_run_leave_nothing(tmp_path: Path) -> None:
    source = folder(tmp_path)
    bring(source, tmp_path / "ours")
    with pytest.raises(UsageError, match="'swift' is taken here: give another with --name"):
        bring(source, tmp_path / "ours")
    (source / "benchmark_config.json").write_text(
        json.dumps({"framework": "other", "tests": [{"default": {**ENTRY, "database": "mongodb"}}]})
    )
    with pytest.raises(ConfigError, match="every test asks for a database that is not served here"):
        bring(source, tmp_path / "ours")
    assert [path.name for path in (tmp_path / "ours" / "Go").iterdir()] == ["swift"]
