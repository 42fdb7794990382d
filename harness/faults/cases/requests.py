"""Profiles and flags that ask for what cannot be are refused at once, by file and key or by flag."""

import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from harness.faults.case import Case, hold
from harness.faults.scene import PROFILE, Scene

AT_ONCE = 100.0  # seconds, on a machine however busy: what is not refused at once takes longer, or for ever
VALUES: dict[str, str] = {
    "level-zero": PROFILE.replace("concurrency = [8]\npipe", "concurrency = [0]\npipe"),
    "level-negative": PROFILE.replace("concurrency = [8]\npipe", "concurrency = [-5]\npipe"),
    "level-huge": PROFILE.replace("concurrency = [8]\npipe", "concurrency = [10000000000]\npipe"),
    "levels-none": PROFILE.replace("concurrency = [8]\npipe", "concurrency = []\npipe"),
    "levels-many": PROFILE.replace("concurrency = [8]\npipe", f"concurrency = {list(range(1, 5000))}\npipe"),
    "depth-zero": PROFILE.replace("query_concurrency = 8", "query_concurrency = 8\npipeline_depth = 0"),
    "minimum-zero": PROFILE.replace("minimum = 1\n", "minimum = 0\n"),
    "minimum-above-maximum": PROFILE.replace("minimum = 1\n", "minimum = 4\n"),
    "maximum-huge": PROFILE.replace("maximum = 1\n", "maximum = 1000000000\n"),
    "repeats-negative": PROFILE.replace("repeats = 0", "repeats = -1"),
    "span-zero": PROFILE.replace("primer_seconds = 0.0", "span = 0"),
    "times-zero": PROFILE.replace("primer_seconds = 0.0", "times = 0"),
    "confidence-two": PROFILE.replace("minimum = 1\n", "minimum = 1\nconfidence = 2.0\n"),
    "half-width-zero": PROFILE.replace("minimum = 1\n", "minimum = 1\nhalf_width = 0\n"),
    "time-negative": PROFILE.replace("cap_seconds = 1.0\njit", "cap_seconds = -1.0\njit"),
    "time-infinite": PROFILE.replace("cap_seconds = 1.0\njit", "cap_seconds = inf\njit"),
    "time-nan": PROFILE.replace("cap_seconds = 1.0\njit", "cap_seconds = nan\njit"),
    "duration-zero": PROFILE.replace("duration_seconds = 1.0", "duration_seconds = 0"),
    "duration-years": PROFILE.replace("duration_seconds = 1.0", "duration_seconds = 1e12"),
    "pause-negative": "pause_seconds = -3.0\n" + PROFILE,
    "unknown-key": "duraton = 3\n" + PROFILE,
    "unknown-gate": PROFILE.replace("repeats = 0", 'failing = ["bad luck"]'),
    "unknown-runtime": 'runtime = "cloud"\n' + PROFILE,
    "wrong-type": PROFILE.replace("duration_seconds = 1.0", 'duration_seconds = "long"'),
    "digits": PROFILE.replace("maximum = 1\n", f"maximum = {'1' * 10_000}\n"),
    "nested": f"x = {'[' * 20_000}{']' * 20_000}\n" + PROFILE,
    "half": PROFILE[:70],
    "escape": PROFILE.replace("Faults: as", "\\u001b[2JFaults: as"),
    "rounds-zero": PROFILE + "[rounds]\ntime_seconds = 0\n",
    "rounds-share": PROFILE + "[rounds]\nmemory_share = 7\n",
}
BINARY: dict[str, Callable[[Path], object]] = {
    "binary": lambda path: path.write_bytes(bytes(range(256))),
    "large": lambda path: path.write_bytes(b"# " + b"x" * (2 << 20)),
    "pipe": os.mkfifo,
    "folder": Path.mkdir,
    "device": lambda path: path.symlink_to("/dev/zero"),
}
FLAGS: dict[str, Sequence[str | bytes]] = {
    "--concurrency-levels": ("1:1:10000000000",),
    "--query-levels": ("99999999999999999999",),
    "--pipeline-concurrency-levels": ("-1",),
    "--cached-query-levels": ("5:0:9",),
    "--order-factors": ("0",),
    "--replicates": ("1000000000",),
    "--cpuset-cpus": ("0-999999999999",),
    "--duration": ("9" * 5000,),
    "--server-port": ("70000",),
    "--seed": ("9" * 5000,),
    "--profile": ("../../../etc/passwd",),
    "--type": ("../json",),
    "--results-name": (b"\xff\xfe",),
    "--latency-goal": ("p0=0ms",),
    "--exclude": ("\x1b[2J",),
    "--resume": ("../../etc",),
    "--mode": ("destroy",),
}
VERBS: dict[str, Sequence[str]] = {
    "dashboard-port": ("dashboard", "--port", "70000"),
    "dashboard-port-negative": ("dashboard", "--port", "-1"),
    "report-nothing": ("report", "no-such-run"),
    "report-format": ("report", "--format", "docx"),
    "compare-nothing": ("compare", "a", "b"),
    "new-traversal": ("new", "x", "--language", "../../escaped"),
    "new-name": ("new", "../../escaped"),
    "new-source": ("new", "x", "--from", "../express"),
    "unknown-verb": ("destroy",),
}


def _refused(place: Scene, words: Sequence[str | bytes], *says: str) -> None:
    answer = place.tfb(*words, seconds=AT_ONCE)
    answer.ends(2).says(*says)
    hold(not list(place.results.iterdir()), else_="something was written to results")
    hold(not list(place.root.rglob("*escaped*")), else_="files outside")


def _profile(text: str, place: Scene) -> None:
    place.add("good")
    bad = place.root / "bad.toml"
    bad.write_text(text, encoding="utf-8")
    words = place.words("--test", "good", "--dry-run")
    _refused(place, [*words, "--profile", str(bad)], "bad.toml: ")


def _file(make: Callable[[Path], object], place: Scene) -> None:
    place.add("good")
    bad = place.root / "bad.toml"
    make(bad)
    _refused(place, [*place.words("--test", "good", "--dry-run"), "--profile", str(bad)], "bad.toml: ")


def _flag(flag: str, values: Sequence[str | bytes], place: Scene) -> None:
    place.add("good")
    words = [*place.words("--test", "good", "--dry-run"), flag, *values]
    _refused(place, words)


def _verb(words: Sequence[str], place: Scene) -> None:
    _refused(place, words)


CASES = (
    *(
        Case(
            name=f"profile/{name}",
            fault=f"a profile with {name.replace('-', ' ')}",
            promise="refused by file and key before anything starts; exit status 2",
            produce=partial(_profile, text),
        )
        for name, text in VALUES.items()
    ),
    *(
        Case(
            name=f"profile/{name}",
            fault=f"a profile that is a {name} file",
            promise="refused by its name; exit status 2",
            produce=partial(_file, make),
        )
        for name, make in BINARY.items()
    ),
    *(
        Case(
            name=f"flag/{flag.removeprefix('--')}",
            fault=f"{flag} {str(values[0])[:24]!r}",
            promise="refused at once; exit status 2, nothing written",
            produce=partial(_flag, flag, values),
        )
        for flag, values in FLAGS.items()
    ),
    *(
        Case(
            name=f"flag/{name}",
            fault=f"./tfb {' '.join(words)}",
            promise="refused at once; exit status 2, nothing written",
            produce=partial(_verb, words),
        )
        for name, words in VERBS.items()
    ),
)
