"""``python -m harness.tests.verify.checks.honest_gallery [--times N] [NAME…]``: honest variants past verification."""

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from harness.host import toolchain
from harness.request.testtypes.registry import TEST_TYPES
from harness.results.records import CheckResult, Level, Outcome
from harness.servers.database.embedded import EmbeddedDatabase, embedded
from harness.tests.doubles.honest import HONEST, Honest
from harness.tests.doubles.honest_orders import HONEST_ORDERS
from harness.verify import verification
from harness.verify.checks.load import read_table_use

PATIENCE = 4.0  # seconds; the machine may be busy, and a slow answer is no dishonest one


def objections(honest: Honest, postgres: EmbeddedDatabase) -> list[tuple[str, CheckResult]]:
    """What fails of this variant, as (test type, result); warnings are none."""
    postgres.restore()
    before = read_table_use(postgres.address)
    found: list[tuple[str, CheckResult]] = []
    with honest.server(postgres.address) as server:
        connection = verification.check_connection(
            implementation=honest.name, urls=honest.urls, endpoint=server.endpoint, replicate=0, patience=PATIENCE
        )
        found += [("http", result) for result in connection.results]
        for name in honest.test_types:
            verdict = verification.check(
                implementation=honest.name,
                urls=honest.urls,
                endpoint=server.endpoint,
                test_type=TEST_TYPES[name],
                database=postgres.address,
                thorough=True,
                replicate=0,
                levels=[Level(concurrency=8)],
                patience=PATIENCE,
            )
            found += [(name, result) for result in verdict.results]
    left = verification.check_load(before, read_table_use(postgres.address))
    found += [("load", result) for result in left]
    return [(name, result) for name, result in found if result.outcome is Outcome.FAIL]


def main(argv: Sequence[str] | None = None) -> int:
    """Print a line a variant; 1 when verification objected to any."""
    p = argparse.ArgumentParser(description="Runs the gallery of honest variants past verification.")
    p.add_argument("names", nargs="*", metavar="NAME", help="variants; default: all")
    p.add_argument("--times", type=int, default=1, metavar="N", help="runs of the gallery; default 1")
    options = p.parse_args(argv)
    chosen = [honest for honest in (*HONEST, *HONEST_ORDERS) if not options.names or honest.name in options.names]
    tool = toolchain.find("postgres")
    if tool is None:
        print("no PostgreSQL server on this machine", file=sys.stderr)
        return 3
    refused = verified = 0
    with tempfile.TemporaryDirectory() as folder, embedded(tool, Path(folder) / "log") as postgres:
        for turn in range(1, options.times + 1):
            for honest in chosen:
                began = time.monotonic()
                found = objections(honest, postgres)
                verified += 1
                refused += bool(found)
                took = time.monotonic() - began
                print(f"{turn:>3}  {honest.name:<24}{took:6.1f} s  {'REFUSED' if found else 'passes'}", flush=True)
                for name, result in found:
                    print(f"       {name}: {result.check} ({result.rule}): {result.message}", flush=True)
                    print(f"         expected {result.expected}, got {result.actual}", flush=True)
    print(f"{len(chosen)} variants, {verified} verifications, {refused} refused")
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main())
