"""What a run says of others that go on at the same time, and how it is taken up again once interrupted."""

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.paths import RESULTS
from harness.records import store

LOOKED_AT = 20  # of the newest runs: one that still goes on is among them


def at_work(results: Path) -> tuple[str, ...]:
    """The runs of these results that another process carries out now."""
    return tuple(folder.name for folder in store.runs(results)[-LOOKED_AT:] if store.is_locked(folder))


def warning(names: tuple[str, ...]) -> str:
    """What their company means for a run that begins."""
    return (
        f"warning: {', '.join(names)} still {'goes' if len(names) == 1 else 'go'} on in another process: each takes "
        "CPU time from the other, and neither's figures count; Ctrl-C here and wait for its end"
    )


@contextmanager
def resumable(results: Path, resumed: str | None) -> Iterator[None]:
    """An interruption of the block says how the run that it began, or resumed, is taken up again."""
    before = store.runs(results)
    try:
        yield
    except KeyboardInterrupt:
        begun = [Path(resumed)] if resumed else [folder for folder in store.runs(results) if folder not in before]
        if not begun:
            raise
        raise KeyboardInterrupt(how_to_go_on(begun[-1])) from None


def how_to_go_on(folder: Path) -> str:
    """The two commands that an interrupted run leaves open."""
    results = where(folder.parent)
    return (
        "interrupted; everything started is stopped, what was measured is kept\n"
        f"Go on: ./tfb run --resume {folder.name}{results}\n"
        f"What it has so far: ./tfb report {folder.name}{results}"
    )


def where(results: Path) -> str:
    """`` --results DIR`` where these are not the project's own."""
    return "" if results.resolve() == RESULTS.resolve() else f" --results {shlex.quote(str(results))}"
