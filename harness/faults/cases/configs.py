"""A broken benchmark_config.json is named, and hurts nobody but itself."""

import json
import os
import socket
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from harness.faults.case import Case, hold
from harness.faults.scene import Scene

PROMISE = "named with file and reason; the good ones are listed; exit status 1"
Entry = Mapping[str, object]
BRACKETS = 100_000
DIGITS = 10_000


def _document(name: str = "bad", entry: Entry | None = None, **more: object) -> dict[str, object]:
    known = {"language": "X", "json_url": "/json", "local": {"run": ["true"]}}
    return {"framework": name, "tests": [{"default": {**known, **(entry or {})}}], **more}


def _entry(**changes: object) -> bytes:
    return json.dumps(_document(entry=changes)).encode()


def _local(**changes: object) -> bytes:
    return _entry(local={"run": ["true"], **changes})


def _named(name: str) -> bytes:
    return json.dumps(_document(name)).encode()


def _text(text: str) -> bytes:
    """The good document with a piece of text in place of its language."""
    return json.dumps(_document()).replace('"X"', text).encode()


BYTES: dict[str, tuple[str, bytes]] = {
    "empty": ("an empty file", b""),
    "half": ("half a file", _entry()[:40]),
    "binary": ("random bytes", bytes(range(256)) * 40),
    "utf16": ("UTF-16", _entry().decode().encode("utf-16")),
    "bom": ("a byte order mark", b"\xef\xbb\xbf" + _entry()),
    "latin1": ("Latin-1 bytes", _text('"J\u00e4va"').decode().encode("latin-1")),
    "brackets": ("100,000 brackets", b"[" * BRACKETS),
    "objects": ("100,000 nested objects", b'{"a":' * BRACKETS + b"1" + b"}" * BRACKETS),
    "deep": ("150 levels where a text belongs", _text("[" * 150 + "]" * 150)),
    "digits": ("a number of 10,000 digits", _text("1" * DIGITS)),
    "exponent": ("the number 1e400", _text("1e400")),
    "nan": ("NaN", _text("NaN")),
    "twice": ("a key twice in one object", b'{"framework": "a", ' + _entry()[1:]),
    "list": ("a list instead of an object", b"[]"),
    "null": ("null", b"null"),
    "large": ("two megabytes of blanks", b" " * (2 << 20) + _entry()),
    "many-unknown": ("10,000 unknown keys", _entry(**{f"key{n}": n for n in range(10_000)})),
    "long-key": ("an unknown key of a megabyte", _entry(**{"k" * 900_000: 1})),
    "no-tests": ("no tests", json.dumps({"framework": "bad", "tests": []}).encode()),
    "no-url": ("no URL", json.dumps({"framework": "bad", "tests": [{"default": {"language": "X"}}]}).encode()),
    "traversal": ("the framework ../../../escaped", _named("../../../escaped")),
    "absolute": ("the framework /tmp/escaped", _named("/tmp/escaped")),  # noqa: S108 - the attack
    "dots": ("the framework ..", _named("..")),
    "separator": ("the framework a/b", _named("a/b")),
    "backslash": ("the framework a\\b", _named("a\\b")),
    "dash": ("the framework -rf", _named("-rf")),
    "long-name": ("a name of 300 characters", _named("n" * 300)),
    "empty-name": ("an empty name", _named("")),
    "newline-name": ("a name with a newline", _named("a\nb")),
    "escape-name": ("a name with a terminal's escape", _named("a\x1b[2Jb")),
    "nul-name": ("a name with NUL", _named("a\0b")),
    "surrogate-name": ("a name with half of a surrogate pair", _named("a\ud800b")),
    "variant": (
        "the variant ../../../escaped",
        json.dumps({"framework": "bad", "tests": [{"../../../escaped": {"language": "X", "json_url": "/"}}]}).encode(),
    ),
    "run-nul": ("NUL in run", _local(run=["tr\0ue"])),
    "run-surrogate": ("half of a surrogate pair in run", _local(run=["\ud800"])),
    "run-empty": ("an empty run", _local(run=[])),
    "run-number": ("a number in run", _local(run=[1])),
    "run-long": ("a word of 100,000 characters in run", _local(run=["w" * 100_000])),
    "build-empty": ("an empty command in build", _local(build=[[]])),
    "build-nul": ("NUL in build", _local(build=["tr\0ue"])),
    "env-equals": ("= in a key of env", _local(env={"A=B": "1"})),
    "env-empty": ("an empty key in env", _local(env={"": "1"})),
    "env-nul": ("NUL in a value of env", _local(env={"A": "\0"})),
    "env-surrogate": ("half of a surrogate pair in env", _local(env={"A": "\udcff"})),
    "tool-path": ("the tool ../evil", _local(requires={"../evil": ">=1"})),
    "tool-flag": ("the tool --force-yes", _local(requires={"--force-yes": ">=1"})),
    "condition-digits": ("a version of 10,000 digits", _local(requires={"java": ">=" + "1" * DIGITS})),
    "condition-quote": ("a condition with half a quotation", _local(requires={"java": ">=1 by java 'x"})),
    "url-unicode": ("the URL /js\u00f6n", _entry(json_url="/js\u00f6n")),
    "url-space": ("a URL with a second header", _entry(json_url="/ HTTP/1.1\r\nX: y")),
    "url-long": ("a URL of 10,000 characters", _entry(json_url="/" + "u" * 10_000)),
    "url-other": ("a URL of another host", _entry(json_url="http://example.org/")),
    "dockerfile": ("the Dockerfile ../../../etc/passwd", _entry(dockerfile="../../../etc/passwd")),
    "dockerfile-absolute": ("the Dockerfile /etc/passwd", _entry(dockerfile="/etc/passwd")),
    "port": ("port 70,000", _entry(port=70_000)),
    "wait": ("a million seconds to wait before requests", _entry(wait_before_sending_requests=1_000_000)),
    "display": ("a terminal's escape in display_name", _entry(display_name="\x1b]0;owned\x07")),
    "tag": ("a terminal's escape in a tag", _entry(tags=["\x1b[31m"])),
    "bidi": ("a turned direction of writing in notes", _entry(notes="\u202egnp.exe")),
}


def _listed(place: Scene) -> None:
    answer = place.tfb("--list-tests", "--frameworks", str(place.frameworks), seconds=100)
    hold("good" in answer.stdout.split(), else_=f"the good one is not listed: {answer.text[-300:]!r}")
    answer.ends(1).says("Python/bad/benchmark_config.json: ")
    outside = list(place.root.rglob("*escaped*"))
    hold(not outside, else_=f"files outside: {outside}")


def _bytes(data: bytes, place: Scene) -> None:
    place.add("good")
    place.write("bad", data)
    _listed(place)


def _made(make: Callable[[Path], object], place: Scene) -> None:
    place.add("good")
    path = place.write("bad", b"")
    path.unlink()
    make(path)
    _listed(place)


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        here = os.open(path.parent, os.O_RDONLY)
        try:
            server.bind(f"/proc/self/fd/{here}/{path.name}")  # a socket's name may have 108 bytes
        finally:
            os.close(here)


SPECIAL: dict[str, tuple[str, Callable[[Path], object]]] = {
    "pipe": ("a named pipe", os.mkfifo),
    "folder": ("a folder of that name", Path.mkdir),
    "device": ("a link to /dev/zero", lambda path: path.symlink_to("/dev/zero")),
    "loop": ("a link to itself", lambda path: path.symlink_to(path)),
    "dangling": ("a link to nothing", lambda path: path.symlink_to("nothing")),
    "socket": ("a socket", _socket),
}


def _same_name(place: Scene) -> None:
    place.add("good")
    place.write("bad", (place.frameworks / "Python/good/benchmark_config.json").read_bytes())
    place.tfb("--list-tests", "--frameworks", str(place.frameworks)).ends(1).says("good", "is taken by")


def _plan_beside(place: Scene) -> None:
    place.add("good")
    place.write("bad", _named("../../../escaped"))
    answer = place.measure("--test", "run", "--dry-run")
    answer.ends(0).says("good", "Python/bad/benchmark_config.json: framework")


CASES = (
    *(
        Case(name=f"config/{name}", fault=fault, promise=PROMISE, produce=partial(_bytes, data))
        for name, (fault, data) in BYTES.items()
    ),
    *(
        Case(name=f"config/{name}", fault=f"{fault} in its place", promise=PROMISE, produce=partial(_made, make))
        for name, (fault, make) in SPECIAL.items()
    ),
    Case(
        name="config/same-name",
        fault="two folders with one name",
        promise="the second is refused and names the first",
        produce=_same_name,
    ),
    Case(
        name="config/plan-beside",
        fault="a broken file beside a good one in --dry-run",
        promise="the good one is planned, the broken one named",
        produce=_plan_beside,
    ),
)
