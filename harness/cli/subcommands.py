"""``./tfb run``, ``verify`` and ``debug``, and TechEmpower's flags, which need no verb."""

from collections.abc import Sequence

from harness.cli.arguments import parse
from harness.host import interruption


def carry_out(words: Sequence[str]) -> int:
    """What one command line asks for; only then is loaded what it needs."""
    options = parse(words)
    if options.list_tests or options.list_tag:
        with interruption.loading():
            from harness.cli.listing import show
        return show(options)
    with interruption.loading():
        from harness.cli.run import run as execute
    return execute(options, words)


def run(argv: Sequence[str]) -> int:
    """Measure."""
    return carry_out(("run", *argv))


def verify(argv: Sequence[str]) -> int:
    """Check."""
    return carry_out(("verify", *argv))


def debug(argv: Sequence[str]) -> int:
    """Start one."""
    return carry_out(("debug", *argv))
