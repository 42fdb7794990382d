"""What the core never imports. Each part is a folder or a module here, and a line below: nothing else knows of it."""

# Verb -> its module, loaded when it is called, and its line of ./tfb --help.
VERBS: dict[str, tuple[str, str]] = {
    "claims": ("harness.extras.claims.cli", "what talks claim: list, run (measure and judge), report"),
    "site": ("harness.extras.site.cli", "publish runs together, as a round, in static pages"),
    "shard": ("harness.extras.deployments.shard", "spread a long run over several deployments"),
}

# Runtime beside local and docker -> its module, which has ``choose``, ``doctor`` and ``clean``.
RUNTIMES: dict[str, str] = {"machines": "harness.extras.deployments.runtime"}

# Test type -> the package of its verification: ``CHECKS``, modules of checks; ``gather``, which asks the server; and
# ``load``, which judges its load.
TEST_TYPES: dict[str, str] = {"order": "harness.extras.orders"}

# What a flag of ./tfb run does instead of a run -> its module.
MODES: dict[str, str] = {"profile": "harness.extras.profiler.profiling"}
