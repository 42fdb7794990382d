"""What killed runs have left is told by its owner's mark, and nobody else's is touched."""

import os
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from harness.host import leftovers, ownership
from harness.host.ownership import Owner


def dead() -> Owner:
    """A process that has ended."""
    with subprocess.Popen(["sleep", "60"]) as child:
        start = ownership.start_of(child.pid)
        child.kill()
    here = ownership.me()
    return Owner(pid=child.pid, start=start or "", namespace=here.namespace, boot=here.boot)


def test_an_owner_reads_as_it_was_written_and_is_alive_dead_or_not_known_here() -> None:
    me, owner = ownership.me(), dead()
    assert (me.pid, me.state(), Owner.parse(str(me))) == (os.getpid(), "alive", me)
    assert owner.state() == "dead"
    elsewhere = Owner(pid=owner.pid, start=owner.start, namespace=owner.namespace, boot="other")
    assert elsewhere.state() == "unknown"


@pytest.mark.parametrize("text", ["", "1", "a.b.c.d", "1.2.3", "9999999999.1.1.1"])
def test_what_is_no_owner_is_none(text: str) -> None:
    assert Owner.parse(text) is None


def folder(below: Path, name: str, owner: Owner | None, *, age: float = 0.0) -> None:
    made = below / f"{ownership.PREFIX}{name}"
    (made / "data").mkdir(parents=True)
    if owner:
        (made / ownership.FILE).write_text(str(owner))
    os.utime(made, (time.time() - age,) * 2)


def test_folders_that_nobody_owns_any_more_are_named_and_removed_and_others_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody's: their maker is dead, was of an earlier boot, or was killed before it wrote its name."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    me = ownership.me()
    folder(tmp_path, "dead", dead())
    folder(tmp_path, "earlier-boot", Owner(pid=me.pid, start=me.start, namespace=me.namespace, boot="earlier"))
    folder(tmp_path, "nameless", None, age=600)
    folder(tmp_path, "being-made", None)
    folder(tmp_path, "alive", me)
    folder(tmp_path, "other-container", Owner(pid=me.pid, start=me.start, namespace="1", boot=me.boot))
    (tmp_path / "tfb-of-somebody").mkdir()
    found = list(leftovers.folders())
    assert [Path(leftover.name).name for leftover in found] == [
        f"{ownership.PREFIX}{name}" for name in ("dead", "earlier-boot", "nameless")
    ]
    assert all(leftover.certain for leftover in found)
    assert leftovers.remove(found) == ()
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "tfb-of-somebody",
        *(f"{ownership.PREFIX}{name}" for name in ("alive", "being-made", "other-container")),
    ]
