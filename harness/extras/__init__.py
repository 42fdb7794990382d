"""What the core never imports. Each part is a folder or a module here, and a line below: nothing else knows of it."""

# Verb -> its module, loaded when it is called, and its line of ./tfb --help.
VERBS: dict[str, tuple[str, str]] = {
    "claims": ("harness.extras.claims.cli", "what talks claim: list, run (measure and judge), report"),
    "init": ("harness.extras.gate.init", "the tfb.toml of a service of your own"),
    "history": ("harness.extras.gate.history", "verdicts of ./tfb compare that were kept, drawn"),
}

# Runtime beside local and docker -> its module, which has ``choose``, ``doctor`` and ``clean``.
RUNTIMES: dict[str, str] = {"machines": "harness.extras.deployments"}

# Test type -> the package of its verification: ``CHECKS``, modules of checks; ``gather``, which asks the server; and
# ``load``, which judges its load.
TEST_TYPES: dict[str, str] = {"order": "harness.extras.orders"}

# What a flag does instead of its verb (run --profiler, report --site, --deployments) -> its module.
MODES: dict[str, str] = {
    "profile": "harness.extras.profiler",
    "site": "harness.extras.site",
    "deployments": "harness.extras.deployments.merge",
}

# What ./tfb compare does for a service of somebody's own.
GATE = "harness.extras.gate.cli"
