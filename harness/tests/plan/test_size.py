"""Lines of a program: what counts, in which files, and that the variants of one folder name what they are made of."""

import json
import re
from pathlib import Path

import pytest

from harness.paths import FRAMEWORKS
from harness.plan import size
from harness.plan.discovery import read

JAVA = '''package tfb;

import java.util.List;
import static java.util.Map.entry;

/** What it is. */
/* A block
   of words. */
final class A { // words behind code do not take its line away
  String url = "https://example.org"; // nor does a string make a comment
  String text = """
      // a line of text

      """;
}
'''
PYTHON = '''"""Documentation."""

from a import (
    b,
    c,
)
import d


def f():
    """What it does."""
    # words
    return b(
        c,
    )
'''
GO = 'package main\n\nimport (\n\t"fmt"\n\t"os"\n)\n\n// words\nfunc main() {\n\tfmt.Println(os.Args)\n}\n'
SCRIPT = """import {
  a,
} from './a.js';
const b = require('b');
require('c');
const later = await import('./d.js');
// words
a(b);
"""
RUST = "use std::{\n    fmt,\n    io,\n};\nmod a;\n\n#[derive(Debug)]\n/// What it is.\nstruct B;\n"
C = "#include <stdio.h>\n#define N 3\nint main(void) { return N; }\n"


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [("A.java", JAVA, 6), ("a.py", PYTHON, 4), ("a.go", GO, 3), ("a.js", SCRIPT, 2), ("a.rs", RUST, 3), ("a.c", C, 2)],
)
def test_lines_that_are_blank_or_comments_or_imports_do_not_count(
    name: str, text: str, expected: int, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(text)
    assert size.lines(tmp_path) == expected
    (tmp_path / name).write_bytes(text.replace("\n", "\r\n").encode())
    assert size.lines(tmp_path) == expected


def test_what_is_no_program_of_its_own_does_not_count(tmp_path: Path) -> None:
    for name in (
        "node_modules/x/a.js",
        "target/a.java",
        "src/test/java/A.java",
        ".venv/a.py",
        "page.html",
        "package.json",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("a();\n" * 100)
    assert size.lines(tmp_path) is None
    (tmp_path / "app.js").write_text("a();\nb();\n")
    assert size.lines(tmp_path) == 2


def test_a_variant_is_made_of_its_own_sources_and_of_those_that_it_shares(tmp_path: Path) -> None:
    for name, count in (("main", 5), ("one", 2), ("two", 3)):
        (tmp_path / "src" / name).mkdir(parents=True)
        (tmp_path / "src" / name / "a.js").write_text("a();\n" * count)
    entry = {"language": "JavaScript", "json_url": "/json"}
    variants = {
        variant: {**entry, "local": {"run": ["node"], "sources": ["src/main", f"src/{variant}"]}}
        for variant in ("one", "two")
    }
    config = {"framework": "f", "tests": [{"default": entry, **variants}]}
    (tmp_path / "benchmark_config.json").write_text(json.dumps(config))
    found = {one.variant: one.info().lines for one in read(tmp_path / "benchmark_config.json")}
    assert found == {"default": 10, "one": 7, "two": 8}


@pytest.mark.parametrize("name", ["quarkus", "quarkus-orders", "spring"])
def test_the_sources_of_a_variant_are_those_that_its_build_compiles(name: str) -> None:
    folder = FRAMEWORKS / "Java" / name
    pom = (folder / "pom.xml").read_text(encoding="utf-8")
    compiled = re.findall(r"<source>(src/.*?)/java</source>", pom)
    profiles = dict(re.findall(r"<profile>\s*(?:<!--.*?-->\s*)?<id>(.*?)</id>(.*?)</profile>", pom, re.DOTALL))
    for one in read(folder / "benchmark_config.json"):
        assert one.local is not None
        values = dict(re.findall(r"<(variant[.\w]*)>(.*?)</", profiles[one.local.build[0][-1]]))
        expected = set(compiled)
        for key, value in values.items():
            expected = {word.replace(f"${{{key}}}", value) for word in expected}
        assert set(one.local.sources) == {"src/main"} | {word for word in expected if (folder / word).is_dir()}


def test_every_source_that_is_named_is_there() -> None:
    for path in FRAMEWORKS.glob("*/*/benchmark_config.json"):
        for one in read(path):
            assert [word for word in (one.local.sources if one.local else ()) if not (one.folder / word).exists()] == []
