"""What killed runs have left is told by its owner's mark, and nobody else's is touched."""

import os
import subprocess
import tempfile
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


def test_this_process_is_alive_and_reads_as_it_was_written() -> None:
    me = ownership.me()
    assert (me.pid, me.state(), Owner.parse(str(me))) == (os.getpid(), "alive", me)


def test_a_process_that_ended_is_dead_and_one_elsewhere_unknown() -> None:
    owner = dead()
    assert owner.state() == "dead"
    elsewhere = Owner(pid=owner.pid, start=owner.start, namespace=owner.namespace, boot="other")
    assert elsewhere.state() == "unknown"


@pytest.mark.parametrize("text", ["", "1", "a.b.c.d", "1.2.3", "9999999999.1.1.1"])
def test_what_is_no_owner_is_none(text: str) -> None:
    assert Owner.parse(text) is None


def test_a_child_s_mark_names_its_harness() -> None:
    assert leftovers.owner_of("812.3.4711.99.abcd") == Owner(pid=812, start="4711", namespace="99", boot="abcd")


def test_the_folder_of_a_dead_owner_is_found_and_removed_and_others_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for name, owner in (("tfb-dead", dead()), ("tfb-alive", ownership.me()), ("other", dead())):
        (tmp_path / name).mkdir()
        (tmp_path / name / ownership.FILE).write_text(str(owner))
    found = [leftover for leftover in leftovers.on_this_machine() if leftover.kind == "folder"]
    assert [leftover.name for leftover in found] == [str(tmp_path / "tfb-dead")]
    assert leftovers.remove(found) == ()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other", "tfb-alive"]
