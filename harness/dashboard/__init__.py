"""The dashboard: a read-only ASGI server over results/ and the web page that it serves."""

from collections.abc import Sequence
from pathlib import Path

from harness.dashboard.runs import Answer, no_answers


def serve(results: Path, *, bind: str, port: int, files: Sequence[Path] = (), answer: Answer = no_answers) -> None:
    """Serve until Ctrl-C; ``files`` are results.json of TechEmpower's toolset to show as well.

    ``answer`` puts a ranking into sentences: harness.report knows how, and depends on this package.
    """
    from harness.dashboard.server import serve as serve_now  # here: a report reads runs without a web server

    serve_now(results, bind=bind, port=port, files=files, answer=answer)
