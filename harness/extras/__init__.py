"""What the core never imports. Each part is a folder or a module here, and a line below: nothing else knows of it."""

from importlib import import_module
from typing import Any

from harness.errors import UsageError

# Verb -> its module, loaded when it is called, and its line of ./tfb --help.
VERBS: dict[str, tuple[str, str]] = {
    "claims": ("harness.extras.claims.cli", "what talks claim: list with verdicts, run (measure and judge)"),
    "init": ("harness.extras.gate.init", "the tfb.toml of a service of your own"),
    "history": ("harness.extras.gate.history", "verdicts of ./tfb compare that were kept, drawn"),
}

# Test type -> the package of its verification: ``CHECKS``, modules of checks; ``gather``, which asks the server; and
# ``load``, which judges its load.
TEST_TYPES: dict[str, str] = {"order": "harness.extras.orders"}

# What the core asks for when a flag wants it -> its module.
PARTS: dict[str, str] = {
    "machines": "harness.extras.deployments",  # a runtime beside local and docker: ``choose``, ``doctor``, ``clean``
    "deployments": "harness.extras.deployments.merge",  # report --deployments
    "site": "harness.extras.site",  # report --site
    "profiler": "harness.extras.profiler",  # run --profiler
    "gate": "harness.extras.gate.cli",  # compare --base, for a service of somebody's own
}


def part(name: str) -> Any:  # noqa: ANN401 - a module that the core does not know
    """The module of a part; raises UsageError where it has been taken out."""
    if name not in PARTS:
        raise UsageError(f"{name}: this part of harness/extras has been taken out of this copy")
    return import_module(PARTS[name])
