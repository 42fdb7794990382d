"""The verbs of ``./tfb`` as the parser knows them."""

from collections.abc import Sequence

from cyclopts import App

from harness.cli.verbs import application


def command_of(verb: Sequence[str]) -> App:
    """The parser of ``run`` or of ``claims run``; of no verb, that of TechEmpower's flags."""
    app = application()
    for name in verb:
        app = app[name]
    return app


def flags_of(verb: Sequence[str]) -> set[str]:
    """All flags that it takes."""
    return {name for each in command_of(verb).assemble_argument_collection() for name in each.names} | {"--help"}
