"""``python -m harness.faults [--runtime local|docker] [--list] [NAME…]``: produce faults, and judge.

A line a case; exit status 1 when a promise was broken. ``--record FILE`` keeps the results, of several commands if need
be, and ``--write FILE`` makes docs/faults.md of them.
"""

import argparse
import contextlib
import fnmatch
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from harness.errors import TfbError
from harness.faults import table
from harness.faults.case import BrokenPromise, CannotBeProducedError, Case
from harness.faults.registry import CASES
from harness.faults.scene import scene, strike
from harness.host import crates
from harness.plain_text import printable


def chosen(names: Sequence[str], runtime: str | None) -> tuple[Case, ...]:
    """The cases of these names, groups or patterns, that the runtime can have."""
    patterns = [name if set("/*?") & set(name) else f"{name}/*" for name in names] or ["*"]
    fitting = (case for case in CASES if any(fnmatch.fnmatch(case.name, pattern) for pattern in patterns))
    return tuple(case for case in fitting if runtime is None or case.runtime in ("any", runtime))


def result_of(case: Case, runtime: str) -> table.Result:
    """Produce one fault."""
    began = time.monotonic()
    place = scene(runtime if case.runtime == "any" else case.runtime)
    word, detail = "kept", ""
    try:
        case.produce(place)
    except BrokenPromise as error:
        word, detail = "broken", str(error)
    except CannotBeProducedError as error:
        word, detail = "not here", str(error)
    except Exception as error:  # noqa: BLE001 - a case that fails by itself has kept no promise
        word, detail = "broken", f"{type(error).__name__}: {error}"
    finally:
        strike(place)
    return table.Result(case=case, word=word, detail=printable(detail), seconds=time.monotonic() - began)


def main() -> int:
    """The command."""
    p = argparse.ArgumentParser(prog="python -m harness.faults", description=__doc__)
    p.add_argument("name", nargs="*", help="cases, groups, or patterns such as config/*; default: all")
    p.add_argument("--runtime", choices=("local", "docker"), help="only cases of this runtime, and those of any")
    p.add_argument("--list", action="store_true", help="list the cases and exit")
    p.add_argument("--record", type=Path, metavar="FILE", help="append each result to a file of JSON lines")
    p.add_argument("--write", type=Path, nargs="+", metavar="FILE", help="put such files into docs/faults.md, and exit")
    options = p.parse_args()
    cases = chosen(options.name, options.runtime)
    if options.write:
        table.write(table.read(options.write, CASES, table.PAGE.read_text(encoding="utf-8")))
        return 0
    if options.list:
        for case in cases:
            print(f"{case.name:<44} {case.promise}")
        print(f"{len(cases)} cases")
        return 0
    with contextlib.suppress(TfbError):  # once, so that no case waits for it
        crates.loadgen()
    results, commit = [], table.present_commit()
    for number, case in enumerate(cases, 1):
        result = result_of(case, options.runtime or "local")
        results.append(result)
        if options.record:
            table.record(replace(result, commit=commit, when=table.now()), options.record)
        print(
            f"{number:>3}/{len(cases)}  {result.word:<8} {result.seconds:6.1f} s  {case.name}  {result.detail}",
            flush=True,
        )
    print(table.summary(results))
    return 1 if any(result.word == "broken" for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
