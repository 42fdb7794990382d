"""What may stand where a shell completes a word: names, tags, runs. Loads no model: a key press waits for it."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from harness.paths import FRAMEWORKS, PROFILES, RESULTS
from harness.records import bounded

CONFIG_BYTES = 1 << 20  # as harness.plan.discovery, which takes too long to load for a key press


def _configs() -> Iterator[tuple[Path, Any]]:
    """The configurations as they stand; a broken one is told by every other command."""
    for path in sorted(FRAMEWORKS.glob("*/*/benchmark_config.json")):
        with contextlib.suppress(OSError, ValueError):
            yield path, bounded.parse(bounded.read(path, CONFIG_BYTES))


def _entries() -> Iterator[tuple[str, Any]]:
    """Every implementation by name with its entry."""
    for _, document in _configs():
        with contextlib.suppress(AttributeError, KeyError, TypeError):
            for variant, entry in ((v, e) for tests in document["tests"] for v, e in tests.items()):
                framework = str(document["framework"])
                yield framework if variant == "default" else f"{framework}-{variant}", entry


def names(*_: object) -> list[str]:
    """Implementations, and the words for many."""
    return ["all", "run", *(name for name, _entry in _entries())]


def languages(*_: object) -> list[str]:
    """The folders of frameworks/."""
    return sorted({path.parent.parent.name for path, _ in _configs()})


def tags(*_: object) -> list[str]:
    """All tags."""
    return sorted({str(tag) for _, entry in _entries() for tag in (entry.get("tags") or [])})


def runs(*_: object) -> list[str]:
    """Runs, newest first."""
    return sorted((path.parent.name for path in RESULTS.glob("*/run.json")), reverse=True)


def profiles(*_: object) -> list[str]:
    """The profiles of config/."""
    return sorted(path.stem for path in PROFILES.glob("*.toml"))


def known_types(*_: object) -> list[str]:
    """The one list that needs the models."""
    from harness.plan.testtypes.registry import TEST_TYPES

    return [*TEST_TYPES, "all"]
