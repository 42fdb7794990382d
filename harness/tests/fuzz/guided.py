"""Runs a Python target under atheris: ``python -m harness.tests.fuzz.guided TARGET [OPTION] [CORPUS]``."""

import sys

import atheris

with atheris.instrument_imports(include=["harness", "tomllib", "csv"]):
    from harness.tests.fuzz.targets import TARGETS

from harness.tests.fuzz import mutation


def main() -> None:
    """Fuzz until libFuzzer reaches a limit and exits the process."""
    name, *options = sys.argv[1:]
    atheris.Setup([sys.argv[0], *options], TARGETS[name], custom_mutator=mutate)
    atheris.Fuzz()


def mutate(data: bytes, most: int, seed: int) -> bytes:
    """Mutate an input as JSON with probability SHARE. Otherwise, or if it is not JSON, mutate it as bytes."""
    as_json = mutation.mutated(data, most, seed) if seed % 100 < mutation.SHARE * 100 else None
    return atheris.Mutate(data, most) if as_json is None else as_json


if __name__ == "__main__":
    main()
