"""Runs one Python target under atheris: ``python -m harness.tests.fuzz.guided TARGET [OPTION OF LIBFUZZER] [CORPUS]``."""

import sys

import atheris

with atheris.instrument_imports(include=["harness", "tomllib", "csv"]):
    from harness.tests.fuzz.targets import TARGETS


def main() -> None:
    """Fuzz until libFuzzer's limits are reached; it ends the process."""
    name, *options = sys.argv[1:]
    atheris.Setup([sys.argv[0], *options], TARGETS[name])
    atheris.Fuzz()


if __name__ == "__main__":
    main()
