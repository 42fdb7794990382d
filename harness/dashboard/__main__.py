"""``python -m harness.dashboard RESULTS [--port N]``: the server alone, for the end-to-end tests."""

import argparse
from pathlib import Path

from harness.dashboard.server import serve


def main() -> None:
    """Serve the given results folder on loopback."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path)
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--file", type=Path, action="append", default=[])
    arguments = parser.parse_args()
    serve(arguments.results, bind="127.0.0.1", port=arguments.port, files=arguments.file)


if __name__ == "__main__":
    main()
