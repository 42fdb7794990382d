"""The dashboard: a read-only ASGI server over results/ and the web page that it serves."""

from collections.abc import Sequence
from pathlib import Path


def serve(results: Path, *, bind: str, port: int, files: Sequence[Path] = ()) -> None:
    """Serve until Ctrl-C; ``files`` are results.json of TechEmpower's toolset to show as well."""
    from harness.dashboard.server import serve as serve_now  # here: a report reads runs without a web server

    serve_now(results, bind=bind, port=port, files=files)
