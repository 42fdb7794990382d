"""An implementation of a web framework, or a service: its configuration, test types and folder."""

import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Literal

from harness.paths import REPOSITORY
from harness.plan.benchmark_config import LocalRun, TestEntry
from harness.plan.requests import PreparedRequest
from harness.plan.testtypes import TestType
from harness.plan.testtypes.registry import TEST_TYPES
from harness.records.run_info import BuildRecord, ImplementationInfo

CORE_TAG = "core"  # marks implementations that ``--test run`` selects
Rules = Literal["tfb", "techempower"]


@dataclass(frozen=True, kw_only=True)
class Implementation:
    """An entry in a benchmark_config.json, or a service."""

    name: str  # framework, followed by "-" and the variant unless the variant is "default"
    variant: str
    framework: str
    folder: Path
    maintainers: tuple[str, ...]
    entry: TestEntry
    rules: Rules = "tfb"  # rule set for verification
    allowed: tuple[str, ...] = ()  # privileges that the user granted with --allow
    declared_privileges: tuple[str, ...] = ()  # privileges declared in this clone's latest commit; they need no consent
    # Request that tests whether the server is ready. None: send GET to the first test type's path.
    ready_request: PreparedRequest | None = None
    ready_statuses: Collection[int] = (200,)  # response statuses of a server that is ready
    start_seconds: float | None = None  # time limit for the start; None for the default
    # Service only: name of a declared request -> test type.
    requests: Mapping[str, TestType] = field(default_factory=dict)
    selected: tuple[str, ...] | None = None  # test types to measure; None for all declared test types

    @property
    def is_service(self) -> bool:
        """True for a service, whose requests are declared in a tfb.toml."""
        return bool(self.requests)

    @cached_property
    def test_types(self) -> Mapping[str, TestType]:
        """Test types in the order of measurement: a service's declared requests, or all registered types with a URL."""
        return self.requests or {t.name: t for t in TEST_TYPES.values() if self.entry.urls.get(t.url_key)}

    @property
    def selected_types(self) -> tuple[TestType, ...]:
        """The declared test types that are selected for measurement."""
        return tuple(t for name, t in self.test_types.items() if self.selected is None or name in self.selected)

    @cached_property
    def urls(self) -> Mapping[str, str]:
        """The URL path of each test type, in the order of measurement."""
        return {
            name: kind.requests[0].target if kind.requests else self.entry.urls[kind.url_key]
            for name, kind in self.test_types.items()
        }

    @property
    def ready_path(self) -> str:
        """Path for readiness checks. If the first test type's requests specify a number of rows, request one row."""
        if self.ready_request:
            return self.ready_request.target
        name, url = next(iter(self.urls.items()))
        test_type = self.test_types[name]
        return f"{url}1" if test_type.counts_rows else test_type.target(url)

    @property
    def is_broken(self) -> bool:
        """True if the implementation is tagged as broken. Broken implementations never run."""
        return "broken" in (tag.lower() for tag in self.entry.tags)

    @property
    def is_core(self) -> bool:
        """True if ``--test run`` selects the implementation."""
        return CORE_TAG in (tag.lower() for tag in self.entry.tags)

    @property
    def declared_name(self) -> str:
        """Name in the configuration file. In a run, ``name`` may have an additional suffix."""
        return self.framework if self.variant == "default" else f"{self.framework}-{self.variant}"

    @property
    def dockerfile(self) -> Path:
        """Path of the implementation's Dockerfile."""
        return self.folder / (self.entry.dockerfile or f"{self.declared_name}.dockerfile")

    @property
    def unsupported_reason(self) -> str | None:
        """A message if the implementation needs a database that tfb does not provide, otherwise None."""
        database = self.entry.database
        if database in ("postgres", "none"):
            return None
        name = {"mysql": "MySQL", "mongodb": "MongoDB"}.get(database, database)
        return f"requires {name}, but tfb provides only PostgreSQL: add a variant that declares no database"

    @property
    def local(self) -> LocalRun | None:
        """Commands that run the implementation without Docker, if declared."""
        return self.entry.local

    @property
    def privileges(self) -> tuple[str, ...]:
        """The privileges of the implementation's container."""
        return tuple(dict.fromkeys((*self.declared_privileges, *self.allowed)))

    @property
    def stack(self) -> str:
        """Language, platform, web server and framework in lower case, used to recognise JIT compilers."""
        words = (self.entry.language, self.entry.platform, self.entry.webserver, self.framework)
        return " ".join(word for word in words if word).lower()

    @property
    def digest(self) -> str:
        """Hash of the configuration entry, including the URLs. A run can be resumed only if the hash is unchanged."""
        config = self.entry.model_dump_json() + json.dumps(dict(self.entry.urls), sort_keys=True)
        return hashlib.sha256(config.encode()).hexdigest()[:16]

    def info(self, build: BuildRecord | None = None) -> ImplementationInfo:
        """Return the implementation's record for run.json."""
        shared = ImplementationInfo.model_fields.keys() & TestEntry.model_fields.keys()
        values = {key: getattr(self.entry, key) for key in shared}
        is_own = self.folder.is_relative_to(REPOSITORY)
        relative = self.folder.relative_to(REPOSITORY if is_own else self.folder.parent.parent)
        derived = {
            "name": self.name,
            "framework": self.entry.framework or self.framework,
            "project": self.framework,
            "folder": relative.as_posix(),
            "rules": self.rules,
            "allowed": self.allowed,
            "display_name": self.entry.display_name or self.name,
            "maintainers": self.maintainers,
            "test_types": tuple(self.urls),
            "digest": self.digest,
            "build": build,
        }
        return ImplementationInfo.model_validate({k: v for k, v in (values | derived).items() if v is not None})
