"""Damaged files of a run: named with their line, and what is whole is shown; a run that goes on knows what it lacks."""

import json
import os
import shutil
import tempfile
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

from harness.dashboard.run_documents import RunDocuments
from harness.faults.case import BrokenPromise, Case, hold
from harness.faults.scene import Scene

Damage = Callable[[Path], object]


@cache
def _original(runtime: str) -> Path:
    """A real run of two implementations, made once; its ``results`` folder."""
    root = Path(tempfile.mkdtemp(prefix="tfb-fault-run-"))
    root.chmod(0o755)
    place = Scene(root, runtime)
    place.add("one")
    place.add("two")
    answer = place.measure("--test", "one", "two", "--type", "json")
    if answer.status != 0:
        raise BrokenPromise(f"the run to be damaged failed: {answer.text[-400:]!r}")
    return root


def run_of(place: Scene) -> Path:
    """A copy of it in the scene, with the same implementations and profile at the same paths."""
    original = _original("local")
    for name in ("frameworks", "results"):
        shutil.copytree(original / name, place.root / name, dirs_exist_ok=True)
    return place.folder()


def _put(name: str, data: bytes) -> Damage:
    return lambda folder: (folder / name).write_bytes(data)


def _lines(name: str, change: Callable[[list[bytes]], list[bytes]]) -> Damage:
    def damage(folder: Path) -> None:
        path = folder / name
        path.write_bytes(b"".join(change(path.read_bytes().splitlines(keepends=True))))

    return damage


def set_value(key: str, value: object) -> Damage:
    """Another value for a key of run.json."""

    def damage(folder: Path) -> None:
        path = folder / "run.json"
        document = json.loads(path.read_bytes())
        document[key] = value
        path.write_text(json.dumps(document), encoding="utf-8")

    return damage


def _special(name: str, make: Callable[[Path], object]) -> Damage:
    def damage(folder: Path) -> None:
        (folder / name).unlink()
        make(folder / name)

    return damage


NOT_READ: dict[str, tuple[str, Damage]] = {  # nothing can be shown: named, exit status 1
    "run-binary": ("run.json of random bytes", _put("run.json", bytes(range(256)))),
    "run-empty": ("an empty run.json", _put("run.json", b"")),
    "run-nested": ("run.json of 100,000 brackets", _put("run.json", b"[" * 100_000)),
    "run-digits": ("run.json with 10,000 digits", _put("run.json", b'{"seed": ' + b"1" * 10_000 + b"}")),
    "run-list": ("run.json that is a list", _put("run.json", b"[]")),
    "run-large": ("run.json of 70 MB", _put("run.json", b" " * (70 << 20))),
    "run-folder": ("a folder in place of run.json", _special("run.json", Path.mkdir)),
    "run-pipe": ("a pipe in place of run.json", _special("run.json", os.mkfifo)),
    "run-device": ("/dev/zero in place of run.json", _special("run.json", lambda path: path.symlink_to("/dev/zero"))),
}
SHOWN: dict[str, tuple[str, str, Damage]] = {  # the rest is shown: named with its key or line, exit status 1
    "run-time": ("started_at 1e300", "run.json", set_value("started_at", 1e300)),
    "run-seed": ("a seed that is a text", "run.json", set_value("seed", "x")),
    "run-levels": ("levels that are a number", "run.json: levels", set_value("levels", 7)),
    "run-version": ("a later schema version", "run.json", set_value("schema_version", 99)),
    "run-status": ("a status that there is not", "run.json", set_value("status", "fine")),
    "samples-gone": ("no samples.jsonl", "samples.jsonl", lambda folder: (folder / "samples.jsonl").unlink()),
    "samples-half": ("half a last line", "samples.jsonl: line", _lines("samples.jsonl", lambda x: [*x, b'{"id": '])),
    "samples-binary": ("a binary line", "samples.jsonl: line", _lines("samples.jsonl", lambda x: [b"\xff\0\n", *x])),
    "samples-nested": (
        "a line of 100,000 brackets",
        "samples.jsonl: line 1",
        _lines("samples.jsonl", lambda x: [b"[" * 100_000 + b"\n", *x]),
    ),
    "samples-digits": (
        "a line with 10,000 digits",
        "samples.jsonl: line 1",
        _lines("samples.jsonl", lambda x: [x[0].replace(b'"requests":', b'"requests":' + b"1" * 10_000, 1), *x]),
    ),
    "samples-long": (
        "a line of 40 MB",
        "samples.jsonl: line 1",
        _lines("samples.jsonl", lambda x: [b"x" * (40 << 20) + b"\n", *x]),
    ),
    "samples-pipe": ("a pipe in place of samples.jsonl", "samples.jsonl", _special("samples.jsonl", os.mkfifo)),
    "samples-latin1": (
        "a Latin-1 name",
        "samples.jsonl: line 1",
        _lines("samples.jsonl", lambda x: [x[0].replace(b"one", b"\xe4", 1).replace(b"two", b"\xe4", 1), *x[1:]]),
    ),
    "replicates-binary": (
        "a binary line",
        "replicates.jsonl: line",
        _lines("replicates.jsonl", lambda x: [b"\xff\n", *x]),
    ),
    "verdict-binary": (
        "a verdict of random bytes",
        "verify/one/json-r0.json",
        _put("verify/one/json-r0.json", bytes(range(256))),
    ),
    "verdict-pipe": (
        "a pipe in place of a verdict",
        "verify/one/json-r0.json",
        _special("verify/one/json-r0.json", os.mkfifo),
    ),
}


def _not_read(damage: Damage, place: Scene) -> None:
    damage(run_of(place))
    place.tfb("report", "--results", str(place.results)).ends(1, 2).says("run.json")
    _dashboard(place)


def _shown(named: str, damage: Damage, place: Scene) -> None:
    damage(run_of(place))
    answer = place.tfb("report", "--results", str(place.results))
    answer.ends(1).says(named)
    hold("two" in answer.stdout or "samples" in named or "levels" in named, else_="what is whole is not shown")
    _dashboard(place)


def _dashboard(place: Scene) -> None:
    """The damaged run beside a whole one: the list has the whole one."""
    shutil.copytree(next((_original("local") / "results").glob("2*")), place.results / "20200101-000000")
    documents = RunDocuments(place.results)
    listed = json.loads(documents.runs())
    hold(
        any(run["run_id"] == "20200101-000000" for run in listed["runs"]),
        else_=f"the whole run is not listed: {listed['broken']}",
    )


RESUMED: dict[str, tuple[str, str, Damage]] = {
    "samples-emptied": ("samples.jsonl emptied", "samples.jsonl", _put("samples.jsonl", b"")),
    "samples-deleted": ("samples.jsonl deleted", "samples.jsonl", lambda folder: (folder / "samples.jsonl").unlink()),
    "run-binary": ("run.json of random bytes", "run.json", _put("run.json", bytes(range(256)))),
}


def _complete(named: str, damage: Damage, place: Scene) -> None:
    """A complete run that was damaged is not called complete."""
    damage(run_of(place))
    place.tfb("--resume", place.folder().name, "--results", str(place.results)).ends(1, 2).says(named)


def _interrupted(place: Scene) -> Path:
    """As if the harness had been killed after its first replicate."""
    folder = run_of(place)
    document = json.loads((folder / "run.json").read_bytes())
    document["status"] = "interrupted"
    words = [word.replace(str(_original("local")), str(place.root)) for word in document["command"]]
    document["command"] = words
    (folder / "run.json").write_text(json.dumps(document), encoding="utf-8")
    _lines("replicates.jsonl", lambda lines: lines[:1])(folder)
    return folder


def _resume(place: Scene, *words: str) -> Scene:
    folder = _interrupted(place)
    answer = place.tfb("--resume", folder.name, "--results", str(place.results), *words, seconds=150)
    answer.ends(0)
    return place


def _goes_on(place: Scene) -> None:
    _resume(place)
    names = sorted(sample.implementation for sample in place.records().samples)
    hold(names == ["one", "two"], else_=f"samples of {names}")


def _measured_again(place: Scene) -> None:
    """A replicate whose samples were lost is measured again, though its record says that it was ok."""
    folder = _interrupted(place)
    (folder / "samples.jsonl").write_bytes(b"")
    place.tfb("--resume", folder.name, "--results", str(place.results), seconds=150).ends(0)
    names = sorted(sample.implementation for sample in place.records().samples)
    hold(names == ["one", "two"], else_=f"samples of {names}")


def _bad_lines(place: Scene) -> None:
    """Lines that are no records are set aside, and kept."""
    folder = _interrupted(place)
    _lines("samples.jsonl", lambda lines: [b"\xff\xfe\n", b"[]\n", b"[" * 5000 + b"\n", *lines, b'{"half'])(folder)
    place.tfb("--resume", folder.name, "--results", str(place.results), seconds=150).ends(0)
    aside = (folder / "samples.unfinished.jsonl").read_bytes()
    hold(b"\xff\xfe\n" in aside, else_="what could not be read was thrown away")


def _refused(named: str, change: Callable[[Scene], object], words: tuple[str, ...], place: Scene) -> None:
    folder = _interrupted(place)
    change(place)
    before = (folder / "samples.jsonl").read_bytes()
    place.tfb("--resume", folder.name, "--results", str(place.results), *words, seconds=60).ends(2).says(named)
    hold((folder / "samples.jsonl").read_bytes() == before, else_="samples were changed")


def _edit(path: str, old: str, new: str) -> Callable[[Scene], object]:
    def change(place: Scene) -> None:
        text = (place.root / path).read_text(encoding="utf-8")
        hold(old in text, else_=f"{path} has no {old}")
        (place.root / path).write_text(text.replace(old, new), encoding="utf-8")

    return change


CONFIG = "frameworks/Python/one/benchmark_config.json"
CHANGES: dict[str, tuple[str, str, Callable[[Scene], object], tuple[str, ...]]] = {
    "profile": ("another duration in the profile's file", "duration_seconds", _edit("tiny.toml", "1.0", "2.0"), ()),
    "command": ("another command in benchmark_config.json", "one", _edit(CONFIG, "good", "answers-slowly"), ()),
    "flag": ("--duration beside --resume", "--duration", lambda _: None, ("--duration", "3")),
    "selection": ("--test beside --resume", "--test", lambda _: None, ("--test", "two")),
    "gone": (
        "an implementation that is gone",
        "one",
        lambda place: shutil.rmtree(place.frameworks / "Python/one"),
        (),
    ),
    "commit": (
        "another commit",
        "commit",
        lambda place: set_value("revision", "0" * 40)(place.folder()),
        (),
    ),
}

CASES = (
    *(
        Case(
            name=f"records/{name}",
            fault=fault,
            promise="named, exit status not 0; the dashboard lists the other runs",
            produce=partial(_not_read, damage),
        )
        for name, (fault, damage) in NOT_READ.items()
    ),
    *(
        Case(
            name=f"records/{name}",
            fault=fault,
            promise="named with file and line or key, what is whole is shown; the dashboard lists the other runs",
            produce=partial(_shown, named, damage),
        )
        for name, (fault, named, damage) in SHOWN.items()
    ),
    *(
        Case(
            name=f"resume/complete-{name}",
            fault=f"a complete run with {fault}",
            promise="its damage is named; it is not called complete",
            produce=partial(_complete, named, damage),
        )
        for name, (fault, named, damage) in RESUMED.items()
    ),
    *(
        Case(
            name=f"resume/{name}",
            fault=f"resumed with {fault}",
            promise="refused by name; no record is changed",
            produce=partial(_refused, named, change, words),
        )
        for name, (fault, named, change, words) in CHANGES.items()
    ),
    Case(
        name="resume/goes-on",
        fault="a run whose second replicate is missing",
        promise="that one is measured, the first is kept",
        produce=_goes_on,
        runtime="local",
    ),
    Case(
        name="resume/samples-lost",
        fault="finished replicates whose samples are lost",
        promise="they are measured again",
        produce=_measured_again,
        runtime="local",
    ),
    Case(
        name="resume/bad-lines",
        fault="lines in samples.jsonl that are no records",
        promise="set aside and kept; the run goes on",
        produce=_bad_lines,
        runtime="local",
    ),
)
