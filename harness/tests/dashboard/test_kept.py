"""A document is made once for all who ask at the same time, and again when a file that it was made of has changed."""

import asyncio
import gzip
import json
from pathlib import Path

import pytest

from harness.dashboard.kept import Body, Kept, body


class Maker:
    """Counts what it makes, of a run that grows or not."""

    def __init__(self, *, growing: bool = False) -> None:
        self.made = 0
        self.growing = growing

    def __call__(self) -> tuple[bytes, bool]:
        self.made += 1
        return json.dumps({"number": self.made}).encode(), self.growing


def asked(folder: Path, make: Maker, *changes: str) -> list[bytes]:
    """What is answered at first, and after a change of each of these files."""

    async def ask() -> list[bytes]:
        kept = Kept()
        found = [await kept.get("document", (folder,), make)]
        for name in changes:
            with (folder / name).open("a") as file:
                file.write("more")
            found.append(await kept.get("document", (folder,), make))
        return [each.packed for each in found]

    return asyncio.run(ask())


def test_a_document_is_made_again_when_a_file_that_it_was_made_of_has_changed(tmp_path: Path) -> None:
    first, second, third = asked(tmp_path, Maker(), "trials.jsonl", "harness.log")
    assert first != second == third


def test_who_asks_at_the_same_time_is_given_the_same(tmp_path: Path) -> None:
    make = Maker()

    async def ask() -> list[Body]:
        kept = Kept()
        return await asyncio.gather(*(kept.get("document", (tmp_path,), make) for _ in range(100)))

    assert len({each.tag for each in asyncio.run(ask())}) == make.made == 1


def test_of_a_growing_run_an_older_document_is_shown_for_some_seconds_but_its_end_at_once(tmp_path: Path) -> None:
    first, older, ended = asked(tmp_path, Maker(growing=True), "trials.jsonl", "run.json")
    assert first == older != ended


def test_what_could_not_be_made_is_tried_again(tmp_path: Path) -> None:
    make = Maker()

    def fail() -> tuple[bytes, bool]:
        raise ValueError("broken")

    async def ask() -> Body:
        kept = Kept()
        with pytest.raises(ValueError, match="broken"):
            await kept.get("document", (tmp_path,), fail)
        return await kept.get("document", (tmp_path,), make)

    assert asyncio.run(ask()).packed


def test_a_body_is_sent_packed_to_who_takes_it_and_not_at_all_to_who_has_it() -> None:
    found = body(b'{"a": 1}')
    assert found.answer("", "")[:2] == (200, b'{"a": 1}')
    status, packed, headers = found.answer("gzip, br", "")
    assert (status, gzip.decompress(packed), headers["content-encoding"]) == (200, b'{"a": 1}', "gzip")
    assert found.answer("gzip", f'"other", W/{found.tag}')[:2] == (304, b"")
