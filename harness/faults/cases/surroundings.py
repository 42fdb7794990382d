"""Users, streams, encodings, virtual environments, clocks and the leftovers of the dead, none of which is the usual."""

import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import psutil

from harness.faults.case import BrokenPromise, CannotBeProducedError, Case, hold
from harness.faults.cases.files import run_of, set_value
from harness.faults.scene import PROGRAM, Answer, Scene
from harness.host import ownership
from harness.host.process import MARK
from harness.paths import REPOSITORY

NOBODY = 65534
ESCAPE = "\x1b]0;owned\x07\x1b[2J"
SHELL = ("sh", "-c")


def _shell(script: str, statuses: Sequence[int], says: Sequence[str], words: Sequence[str], place: Scene) -> None:
    """A command by way of a shell that closes streams, sets limits or fills disks; ``$@`` is the command."""
    place.add("good")
    answer = place.tfb(*words, "--frameworks", str(place.frameworks), before=(*SHELL, script, "sh"))
    answer.ends(*statuses).says(*says)


LISTED = ("--list-tests",)
STREAMS: dict[str, tuple[str, str, Sequence[int], Sequence[str]]] = {
    "stdin-closed": ("a closed stdin", '"$@" <&-', (0,), ("good",)),
    "stdout-closed": ("a closed stdout", '"$@" >&-', (0, 1), ()),
    "stderr-closed": ("a closed stderr", '"$@" 2>&-', (0,), ("good",)),
    "all-closed": ("all streams closed", '"$@" <&- >&- 2>&-', (0, 1), ()),
    "stdout-full": ("a full disk behind stdout", '"$@" >/dev/full', (1,), ("No space left",)),
    "stderr-full": ("a full disk behind stderr", '"$@" 2>/dev/full', (0,), ("good",)),
    "reader-gone": ("a reader that ends at once", '"$@" | true', (0,), ()),
    "ascii": ("PYTHONIOENCODING=ascii", 'PYTHONIOENCODING=ascii "$@"', (0,), ("good",)),
    "latin1": ("PYTHONIOENCODING=latin-1", 'PYTHONIOENCODING=latin-1 "$@"', (0,), ("good",)),
    "c-locale": ("LC_ALL=C without UTF-8 mode", 'LC_ALL=C PYTHONCOERCECLOCALE=0 PYTHONUTF8=0 "$@"', (0,), ("good",)),
    "no-home": ("no HOME", 'unset HOME; "$@"', (0,), ("good",)),
    "no-path": ("an empty PATH", 'PATH= "$@"', (0,), ("good",)),
    "odd-folder": (
        "a current folder that was removed",
        'mkdir gone && cd gone && rmdir ../gone && "$@"',
        (0,),
        ("good",),
    ),
    "few-files": ("32 open files", 'ulimit -n 32; "$@"', (0, 1, 3), ()),
    "little-memory": ("ulimit -v of 200 MB", 'ulimit -v 200000; "$@"', (0, 1), ()),
    "no-tmp": ("TMPDIR that does not exist", 'TMPDIR=/nonexistent "$@"', (0,), ("good",)),
}


def _report(environment: Mapping[str, str], place: Scene) -> None:
    """The table of a real run in an encoding that lacks its signs."""
    run_of(place)
    place.tfb("report", "--results", str(place.results), env=environment).ends(0).says("one", "two")


def _doctor_unenterable(place: Scene) -> None:
    """A folder on PATH that an ordinary user may not enter."""
    if os.geteuid() != 0:
        raise CannotBeProducedError("needs root, to become an ordinary user")
    locked = place.root / "locked"
    locked.mkdir(mode=0o700)
    answer = _as_nobody(place, f'PATH={locked}:$PATH exec "$@" doctor')
    answer.ends(0, 3).says("Machine, grade")


def _nobody_lists(place: Scene) -> None:
    place.add("good")
    _as_nobody(place, f'exec "$@" --list-tests --frameworks {place.frameworks}').ends(0).says("good")


def _nobody_writes(place: Scene) -> None:
    """Results that this user may not write."""
    place.add("good")
    words = " ".join(place.words("--test", "good", "--type", "json"))
    place.results.chmod(0o755)
    _as_nobody(place, f'exec "$@" {words}').ends(1, 3).says("results")


def _as_nobody(place: Scene, script: str) -> Answer:
    """Run a shell's words as nobody, in whose "$@" is the command; Python and checkout where nobody may read them.

    Both are often in a folder that only their owner may enter: they are mounted into the scene, for this command alone.
    """
    if os.geteuid() != 0 or shutil.which("setpriv") is None or shutil.which("unshare") is None:
        raise CannotBeProducedError("needs root, setpriv and unshare, to become an ordinary user")
    base = Path(sys.base_prefix).resolve()
    program = Path(sys.executable).resolve().relative_to(base)
    shown = {"python": base, "checkout": REPOSITORY, "packages": Path(psutil.__file__).parents[1]}
    for name in shown:
        (place.root / name).mkdir()
    binds = [f"mount --bind {shlex.quote(str(path))} {place.root / name}" for name, path in shown.items()]
    namespace = ("unshare", "--mount", "--", *SHELL, " && ".join((*binds, 'exec "$@"')), "sh")
    if (tried := subprocess.run((*namespace, "true"), check=False, capture_output=True, text=True)).returncode != 0:
        raise CannotBeProducedError(f"no folder can be mounted here: {tried.stderr.strip()}")
    words = (*namespace, *_nobody(*SHELL), script, "sh", str(place.root / "python" / program), "-c", PROGRAM)
    paths = {
        "PYTHONPATH": f"{place.root}/checkout:{place.root}/packages",
        "LD_LIBRARY_PATH": f"{place.root}/python/lib",
    }
    return place.run(words, {"HOME": "/nonexistent", **paths})


def _nobody(*words: str) -> tuple[str, ...]:
    return ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", *words)


# ---- what a terminal and a spreadsheet are given -----------------------------------------------------------------


def _shown_escape(key: str, place: Scene) -> None:
    """A record with a terminal's escapes; ``judge`` looks at everything that is printed."""
    set_value(key, f"x{ESCAPE}y")(run_of(place))
    answer = place.tfb("report", "--results", str(place.results))
    hold("\\x1b" in answer.text, else_="the escape is not spelled out")


def _escape_in_samples(place: Scene) -> None:
    folder = run_of(place)
    for name in ("samples.jsonl", "replicates.jsonl", "run.json"):
        path = folder / name
        path.write_bytes(path.read_bytes().replace(b'"one"', b'"o\\u001b[2Jne"'))
    (folder / "ranking.json").unlink()
    place.tfb("report", "--results", str(place.results)).says("\\x1b[2J")


def _markup(place: Scene) -> None:
    """Names that a library of colours would take for its own."""
    folder = run_of(place)
    for name in ("samples.jsonl", "replicates.jsonl", "run.json"):
        path = folder / name
        path.write_bytes(path.read_bytes().replace(b'"one"', b'"[/bold]one"'))
    (folder / "ranking.json").unlink()
    place.tfb("report", "--results", str(place.results)).says("[/bold]one")


def _formula(prefix: str, place: Scene) -> None:
    folder = run_of(place)
    for name in ("samples.jsonl", "replicates.jsonl", "run.json"):
        path = folder / name
        path.write_bytes(path.read_bytes().replace(b'"one"', json.dumps(f"{prefix}HYPERLINK(1)").encode()))
    (folder / "ranking.json").unlink()
    answer = place.tfb("report", "--results", str(place.results), "--format", "csv")
    hold(f",'{prefix}HYPERLINK" in answer.stdout or f"\"'{prefix}" in answer.stdout, else_=answer.stdout[:300])


def _html(place: Scene) -> None:
    """A name that is a script, in what Markdown and JSON pages are made of."""
    folder = run_of(place)
    for name in ("samples.jsonl", "replicates.jsonl", "run.json"):
        path = folder / name
        path.write_bytes(path.read_bytes().replace(b'"one"', b'"<script>alert(1)</script>"'))
    (folder / "ranking.json").unlink()
    from harness.dashboard.plain import run_page
    from harness.dashboard.run_documents import RunDocuments

    page = run_page(RunDocuments(place.results).document(folder.name), [])
    hold("<script>alert" not in page, else_="a name is a script of the page")


def _clock_set_back(place: Scene) -> None:
    folder = run_of(place)
    set_value("completed_at", 1.0)(folder)
    answer = place.tfb("report", "--results", str(place.results))
    hold("-1" not in answer.stdout.splitlines()[0], else_=answer.stdout.splitlines()[0])


# ---- the launcher ------------------------------------------------------------------------------------------------


def _launcher(prepare: Callable[[Path], object], says: str, place: Scene) -> None:
    """./tfb with a virtual environment that is broken, and a Python that cannot make another."""
    venv = place.root / "venv"
    (venv / "bin").mkdir(parents=True)
    for name in ("requirements.lock", "requirements-dev.lock"):
        shutil.copy(REPOSITORY / name, venv / name)
    prepare(venv / "bin" / "python")
    environment = {"TFB_VENV": str(venv), "TFB_PYTHON": "/bin/false", "PATH": "/nonexistent"}
    answer = place.run(["/bin/sh", str(REPOSITORY / "tfb"), "--list-tests"], environment)
    answer.ends(3).says(says)


def _not_a_program(path: Path) -> None:
    path.write_text("no program", encoding="utf-8")


LAUNCHER: dict[str, tuple[str, Callable[[Path], object]]] = {
    "gone": ("an interpreter that is gone", lambda path: path.symlink_to("/nonexistent/python3")),
    "forbidden": ("an interpreter that may not be run", _not_a_program),
    "missing": ("no interpreter", lambda _path: None),
}

# ---- leftovers ---------------------------------------------------------------------------------------------------


def _dead_owner() -> ownership.Owner:
    """A process of this machine that has ended."""
    with subprocess.Popen(["sleep", "600"]) as child:
        start = ownership.start_of(child.pid)
        child.kill()
    here = ownership.me()
    if start is None:
        raise BrokenPromise("a started process has no start time")
    return ownership.Owner(pid=child.pid, start=start, namespace=here.namespace, boot=here.boot)


def _left(place: Scene) -> "tuple[subprocess.Popen[bytes], Path]":
    """A process and a scratch folder of a harness that is dead."""
    owner = _dead_owner()
    mark = f"{owner.pid}.1.{owner.start}.{owner.namespace}.{owner.boot}"
    process = subprocess.Popen(["sleep", "600"], env={**os.environ, MARK: mark}, start_new_session=True)
    folder = place.scratch / "tfb-scratch-postgres-left"
    (folder / "data").mkdir(parents=True)
    (folder / ownership.FILE).write_text(str(owner), encoding="ascii")
    return process, folder


def _with_leftovers(command: Callable[[Scene], object], *, removed: bool, place: Scene) -> None:
    process, folder = _left(place)
    try:
        command(place)
        time.sleep(0.2)
        gone = (process.poll() is not None, not folder.exists())
        hold(gone == (removed, removed), else_=f"process gone, folder gone: {gone}; expected {removed}")
    finally:
        process.kill()
        process.wait()


def _doctor_names(place: Scene) -> None:
    place.tfb("doctor", seconds=120).says("left by a run that was killed", "sleep (pid", "tfb-scratch-postgres-left")


def _clean_dry(place: Scene) -> None:
    place.tfb("clean", "--leftovers", "--dry-run").ends(0).says("left by a killed run", "sleep (pid")


def _clean(place: Scene) -> None:
    place.tfb("clean", "--leftovers", "--yes").ends(0).says("sleep (pid", "tfb-scratch-postgres-left")


def _next_run(place: Scene) -> None:
    place.add("good")
    words = place.words("--test", "good", "--type", "json")
    place.tfb(*(word for word in words if word != "--no-install"), "--yes", seconds=150).ends(0).says("killed run")


def _next_run_without_consent(place: Scene) -> None:
    place.add("good")
    place.measure("--test", "good", "--type", "json").ends(0).says("./tfb clean removes it")


def _living(place: Scene) -> None:
    """What a living harness uses is nobody's leftover."""
    owner = ownership.me()
    mark = f"{owner.pid}.1.{owner.start}.{owner.namespace}.{owner.boot}"
    with subprocess.Popen(["sleep", "600"], env={**os.environ, MARK: mark}) as process:
        try:
            place.tfb("clean", "--leftovers", "--yes").ends(0)
            hold(process.poll() is None, else_="a living run's process was killed")
        finally:
            process.kill()


def _produced(command: Callable[[Scene], object], removed: bool, place: Scene) -> None:
    _with_leftovers(command, removed=removed, place=place)


CASES = (
    *(
        Case(
            name=f"surroundings/{name}",
            fault=fault,
            promise="works, or one line says why not" if not says else f"says {', '.join(says)}; the exit status fits",
            produce=partial(_shell, script, statuses, says, LISTED),
        )
        for name, (fault, script, statuses, says) in STREAMS.items()
    ),
    *(
        Case(
            name=f"surroundings/report-{name}",
            fault=f"a report in {name}",
            promise="the whole table; signs that the encoding lacks are spelled out",
            produce=partial(_report, environment),
            runtime="local",
        )
        for name, environment in (
            ("ascii", {"PYTHONIOENCODING": "ascii"}),
            ("latin1", {"PYTHONIOENCODING": "latin-1"}),
            ("narrow", {"COLUMNS": "20"}),
            ("dumb", {"TERM": "dumb"}),
        )
    ),
    Case(
        name="surroundings/path-forbidden",
        fault="a folder on PATH that an ordinary user may not enter",
        promise="./tfb doctor shows the machine",
        produce=_doctor_unenterable,
    ),
    Case(
        name="surroundings/nobody",
        fault="a user without a home",
        promise="lists the implementations",
        produce=_nobody_lists,
    ),
    Case(
        name="surroundings/results-forbidden",
        fault="results that this user may not write",
        promise="one line names them",
        produce=_nobody_writes,
    ),
    *(
        Case(
            name=f"terminal/{key}",
            fault=f"a terminal's escapes in {key} of run.json",
            promise="spelled out, never sent to the terminal",
            produce=partial(_shown_escape, key),
            runtime="local",
        )
        for key in ("profile", "runtime")
    ),
    Case(
        name="terminal/names",
        fault="a terminal's escapes in the names of records",
        promise="spelled out, never sent to the terminal",
        produce=_escape_in_samples,
        runtime="local",
    ),
    Case(
        name="terminal/markup",
        fault="names with the marks of a library of colours",
        promise="shown as they are",
        produce=_markup,
        runtime="local",
    ),
    *(
        Case(
            name=f"terminal/csv-{name}",
            fault=f"a name that begins with {prefix}, in CSV",
            promise="begins with an apostrophe: no spreadsheet computes it",
            produce=partial(_formula, prefix),
            runtime="local",
        )
        for name, prefix in (("equals", "="), ("plus", "+"), ("minus", "-"), ("at", "@"))
    ),
    Case(
        name="terminal/html",
        fault="a name that is a script, in HTML",
        promise="is text",
        produce=_html,
        runtime="local",
    ),
    Case(
        name="surroundings/clock",
        fault="a clock that was set back in a run",
        promise="no negative time is shown",
        produce=_clock_set_back,
        runtime="local",
    ),
    *(
        Case(
            name=f"launcher/{name}",
            fault=f"a virtual environment with {fault}, and no Python to make another",
            promise="exit status 3, and a line that says what to do",
            produce=partial(_launcher, prepare, "Python 3.11"),
        )
        for name, (fault, prepare) in LAUNCHER.items()
    ),
    *(
        Case(
            name=f"leftovers/{name}",
            fault="a process and a scratch folder of a harness that was killed",
            promise=promise,
            produce=partial(_produced, command, removed),
            runtime="local" if "run" in name else "any",
        )
        for name, promise, command, removed in (
            ("doctor", "./tfb doctor names them", _doctor_names, False),
            ("clean-dry-run", "./tfb clean --dry-run names them, and removes nothing", _clean_dry, False),
            ("clean", "./tfb clean --yes removes them", _clean, True),
            ("next-run", "the next run names and removes them with consent", _next_run, True),
            (
                "next-run-no",
                "the next run names them and leaves them without consent",
                _next_run_without_consent,
                False,
            ),
        )
    ),
    Case(
        name="leftovers/living",
        fault="a process of a harness that lives",
        promise="./tfb clean leaves it alone",
        produce=_living,
    ),
)
