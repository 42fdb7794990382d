"""Every other file that a command reads, with something else in its place: named, in bounded time and memory."""

import gzip
import os
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from harness.faults.case import Case, Runtime, hold
from harness.faults.cases.files import run_of
from harness.faults.scene import Scene

MANY = 20_000_000  # small values: each takes a parser many times the bytes that it has in the file
DAMAGE: dict[str, tuple[str, Callable[[Path], object]]] = {
    "pipe": ("a named pipe", os.mkfifo),
    "folder": ("a folder", Path.mkdir),
    "device": ("a link to /dev/zero", lambda path: path.symlink_to("/dev/zero")),
    "loop": ("a link to itself", lambda path: path.symlink_to(path)),
    "binary": ("random bytes", lambda path: path.write_bytes(bytes(range(256)) * 40)),
    "nested": ("100,000 brackets", lambda path: path.write_bytes(b"[" * 100_000 + b"]" * 100_000)),
    "digits": ("a number of 10,000 digits", lambda path: path.write_bytes(b'{"a": ' + b"1" * 10_000 + b"}")),
    "list": ("a list of lists", lambda path: path.write_bytes(b"[[], []]")),
    "values": ("60 MB of empty lists", lambda path: path.write_bytes(b"[" + b"[]," * MANY + b"[]]")),
    "large": ("80 MB of blanks", lambda path: path.write_bytes(b" " * (80 << 20))),
}
QUICK = ("pipe", "folder", "device", "loop", "binary", "nested", "digits", "list", "values")


@dataclass(frozen=True, kw_only=True)
class Read:
    """A file that a command reads: where it is in the scene, what must be there beside it, and the command."""

    what: str
    path: str
    words: Sequence[str]
    status: Sequence[int]
    damages: Sequence[str] = QUICK
    run: bool = False  # a run must be there
    says: str = ""  # the file's name, where that is not the last part of its path

    def __call__(self, make: Callable[[Path], object], place: Scene) -> None:
        """The command names the file."""
        if self.run:
            run_of(place)
        place.add("good")
        path = place.root / self.path
        path.parent.mkdir(parents=True, exist_ok=True)
        make(path)
        words = [word.replace("ROOT", str(place.root)) for word in self.words]
        place.tfb(*words, seconds=60).ends(*self.status).says(self.says or path.name)


READ: Mapping[str, Read] = {
    "hosts": Read(
        what="the layout of --hosts",
        path="machines.toml",
        words=("--test", "good", "--dry-run", "--frameworks", "ROOT/frameworks", "--hosts", "ROOT/machines.toml"),
        status=(2,),
    ),
    "lab": Read(
        what="the sets of machines of ./tfb shard",
        path="lab.toml",
        words=("shard", "--lab", "ROOT/lab.toml", "--dry-run", "--test", "good", "--frameworks", "ROOT/frameworks"),
        status=(2,),
    ),
    "queue": Read(
        what="the queue of ./tfb unit",
        path="queue.json",
        words=("unit", "ROOT/queue.json", "0001", "--slot", "1"),
        status=(2,),
    ),
    "done": Read(
        what="the name of a unit's run",
        path="units/0001/done",
        words=("merge", "ROOT", "--output", "ROOT/merged"),
        status=(1, 2),
        damages=("pipe", "folder", "device", "binary", "large"),
    ),
    "import": Read(
        what="the configuration of a folder to import",
        path="tree/Go/x/benchmark_config.json",
        words=("import", "ROOT/tree/Go/x", "--to", "ROOT/frameworks"),
        status=(1, 2),
    ),
    "claims": Read(
        what="the recorded verdicts on claims",
        path="results/claims.json",
        words=("claims", "report", "--results", "ROOT/results"),
        status=(1,),
    ),
    "round": Read(
        what="a results.json to compare with",
        path="round.json",
        words=("compare", "ROOT/round.json", "latest", "--results", "ROOT/results"),
        status=(2,),
        damages=("binary", "nested", "digits", "list", "values", "large"),
        run=True,
    ),
    "opened": Read(
        what="a results.json for the dashboard",
        path="round.json",
        words=("dashboard", "ROOT/round.json", "--port", "0", "--results", "ROOT/results"),
        status=(1,),
        damages=("pipe", "folder", "device", "loop", "binary", "nested", "digits", "values", "large"),
    ),
    "site": Read(
        what="what a site remembers of its rounds",
        path="site/site.json.gz",
        words=("site", "--output", "ROOT/site", "--results", "ROOT/results"),
        status=(1,),
        damages=("pipe", "folder", "device", "loop", "binary"),
        run=True,
    ),
    "lock": Read(
        what="the lock of a run",
        path="results/20260101-000000/.lock",
        words=("--resume", "20260101-000000", "--results", "ROOT/results"),
        status=(1, 2),
        damages=("pipe", "folder", "device", "loop"),
        says="20260101-000000",
    ),
}


def _bomb(place: Scene) -> None:
    """400 MB of zeros in 400 kB."""
    run_of(place)
    path = place.root / "site" / "site.json.gz"
    path.parent.mkdir()
    with gzip.open(path, "wb", compresslevel=9) as file:
        for _ in range(400):
            file.write(bytes(1 << 20))
    place.tfb("site", "--output", str(path.parent), "--results", str(place.results)).ends(1).says("site.json.gz")


def _lock_link(place: Scene) -> None:
    """A run whose lock is a link to somebody's file: that is neither emptied nor written to."""
    folder = run_of(place)
    victim = place.root / "victim"
    victim.write_text("precious", encoding="utf-8")
    (folder / ".lock").unlink(missing_ok=True)
    (folder / ".lock").symlink_to(victim)
    place.tfb("--resume", folder.name, "--results", str(place.results))
    hold(victim.read_text(encoding="utf-8") == "precious", else_="what the link leads to was changed")


def _completion(place: Scene) -> None:
    """Tab beside a configuration that is a pipe, or nested without end."""
    code = (
        "from pathlib import Path\nimport harness.cli.completion as c\n"
        f"c.FRAMEWORKS = Path({str(place.frameworks)!r})\nprint(*c.names())"
    )
    place.add("good")
    place.write("bad", b"[" * 100_000)
    pipe = place.write("pipe", b"")
    pipe.unlink()
    os.mkfifo(pipe)
    place.run([sys.executable, "-c", code], seconds=30).ends(0).says("good")


def _many_values(name: str, place: Scene) -> None:
    """A file of a run that holds 20,000,000 small values: named, and what is whole is shown."""
    folder = run_of(place)
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b'{"a": [' + b"[]," * MANY + b"[]]}")
    place.tfb("report", "--results", str(place.results), seconds=100).ends(1).says(path.name)


def _long_line(place: Scene) -> None:
    """A line of samples.jsonl just short enough to be read, of empty lists."""
    folder = run_of(place)
    path = folder / "samples.jsonl"
    path.write_bytes(b"[" + b"[]," * 5_000_000 + b"[]]\n" + path.read_bytes())
    place.tfb("report", "--results", str(place.results), seconds=100).ends(1).says("samples.jsonl: line 1")


def _many_bad_lines(place: Scene) -> None:
    """3,000,000 lines that are no records: the first are named, and the good ones count."""
    folder = run_of(place)
    path = folder / "samples.jsonl"
    path.write_bytes(b"x\n" * 3_000_000 + path.read_bytes())
    answer = place.tfb("report", "--results", str(place.results), seconds=200)
    answer.ends(1).says("samples.jsonl: line 1", "two")
    hold(len(answer.text) < 1 << 20, else_=f"{len(answer.text)} characters on the terminal")


def _odd_name(name: bytes, place: Scene) -> None:
    """A folder of implementations by a name that no terminal should be given: the good one is listed."""
    place.add("good")
    place.write(os.fsdecode(name), b"{")
    answer = place.tfb("--list-tests", "--frameworks", str(place.frameworks))
    answer.ends(1)
    hold("good" in answer.stdout.split(), else_=f"the good one is not listed: {answer.text[-300:]!r}")


def _odd_run(name: bytes, place: Scene) -> None:
    """A folder of results by such a name, and in it a run: the others are shown."""
    folder = run_of(place)
    odd = place.results / os.fsdecode(name)
    odd.mkdir()
    shutil.copy(folder / "run.json", odd)
    place.tfb("report", folder.name, "--results", str(place.results)).ends(0).says("two")
    place.tfb("report", "nonesuch", "--results", str(place.results)).ends(2)


NAMES: dict[str, tuple[str, bytes]] = {
    "newline": ("a newline", b"a\nb"),
    "escape": ("a terminal's escape", b"a\x1b[2Jb"),
    "bytes": ("bytes that are no UTF-8", b"a\xff\xfeb"),
    "bidi": ("a turned direction of writing", "a\u202egnp".encode()),
    "long": ("255 characters", b"n" * 255),
}
NAMED: dict[str, tuple[str, Callable[[bytes, Scene], None], Runtime]] = {
    "implementation": ("an implementation", _odd_name, "any"),
    "run": ("results", _odd_run, "local"),
}

CASES = (
    *(
        Case(
            name=f"file/{name}-{damage}",
            fault=f"{DAMAGE[damage][0]} in place of {read.what}",
            promise="named, with an exit status of its own",
            produce=partial(read, DAMAGE[damage][1]),
            runtime="local" if read.run else "any",
        )
        for name, read in READ.items()
        for damage in read.damages
    ),
    Case(
        name="file/site-bomb",
        fault="400 MB in a packed file of 400 kB",
        promise="named; not unpacked",
        produce=_bomb,
        runtime="local",
    ),
    Case(
        name="file/lock-link",
        fault="a run's lock that is a link to another file",
        promise="that file is neither emptied nor written to",
        produce=_lock_link,
        runtime="local",
    ),
    Case(
        name="file/completion",
        fault="Tab beside a configuration that is a pipe, and one of 100,000 brackets",
        promise="the good ones are offered",
        produce=_completion,
    ),
    *(
        Case(
            name=f"records/values-{name.rpartition('/')[2].partition('.')[0]}",
            fault=f"{name} of 60 MB of empty lists",
            promise="named; less than 300 MiB",
            produce=partial(_many_values, name),
            runtime="local",
        )
        for name in ("run.json", "verify/one/json-r0.json")
    ),
    Case(
        name="records/values-line",
        fault="a line of 15 MB of empty lists in samples.jsonl",
        promise="named; less than 300 MiB",
        produce=_long_line,
        runtime="local",
    ),
    Case(
        name="records/many-bad-lines",
        fault="3,000,000 lines that are no records",
        promise="the first ones are named, what is whole is shown; less than 300 MiB",
        produce=_many_bad_lines,
        runtime="local",
    ),
    *(
        Case(
            name=f"names/{where}-{name}",
            fault=f"a folder of {what} whose name holds {fault}",
            promise="the others are shown; nothing of it reaches the terminal",
            produce=partial(produce, data),
            runtime=runtime,
        )
        for where, (what, produce, runtime) in NAMED.items()
        for name, (fault, data) in NAMES.items()
    ),
)
