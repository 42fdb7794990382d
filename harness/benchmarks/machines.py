"""``python -m harness.benchmarks.machines skew|reader|cost|lost|sets``: the figures of docs/machines.md.

On machines made of namespaces on this computer (root, sshd, iproute2, a Docker engine, whose images are used). What
they say of skew, overhead and detection holds anywhere; what they say of speed holds here alone.
Each word is one piece of a few minutes.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

import psutil

from harness.benchmarks import namespaces
from harness.benchmarks.command import command
from harness.benchmarks.namespaces import Lab
from harness.cli.arguments import Parser
from harness.errors import Exit, StartError
from harness.host import process
from harness.paths import REPOSITORY
from harness.plan.hosts import parse
from harness.records import merging, store
from harness.records.models import Sample
from harness.report import terminal
from harness.runtime.compose import RUN_LABEL, client
from harness.runtime.docker import WRK_IMAGE
from harness.runtime.machines import generators
from harness.runtime.machines.machine import Machine, reached
from harness.runtime.machines.meter import IMAGE as METER_IMAGE
from harness.runtime.machines.meter import MeterReader
from harness.stats.ranking import rank

RUN = "benchmark"
NAMED_SECONDS = 60.0  # after which a loss counts as not noticed
BOUND_SECONDS = 900.0  # of one run: its images are sent first, which a busy computer does not do in five minutes
BUSY = ("--test", "express", "--type", "json")


def main(argv: Sequence[str]) -> int:
    """Bring the machines up, measure one piece, print it as rows of a Markdown table."""
    p = Parser(prog="python -m harness.benchmarks.machines", description=__doc__)
    p.add_argument("piece", choices=(*PIECES, "lost"))
    p.add_argument("--times", type=int, default=20, help="repetitions of what is repeated")
    p.add_argument("--only", default="", metavar="WORDS", help="of `lost`, what has these words in its name")
    p.add_argument("--inside", action="store_true", help="this process is on the laptop already")
    options = p.parse_args(list(argv))
    if options.inside:
        INSIDE[options.piece](options.times)
        return Exit.OK
    if why := namespaces.obstacle():
        raise StartError(why)
    with namespaces.machines() as lab:
        print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs\n", flush=True)
        if options.piece == "lost":
            lost(lab, options.only)
        else:
            PIECES[options.piece](lab, options.times)
    return Exit.OK


def on_the_laptop(piece: str) -> Callable[[Lab, int], None]:
    """The piece in a process that reaches the machines as a run does."""

    def start(lab: Lab, times: int) -> None:
        words = lab.laptop(sys.executable, "-m", __spec__.name, piece, "--inside", "--times", str(times))
        subprocess.run(words, env=lab.environment, cwd=REPOSITORY, check=True, timeout=BOUND_SECONDS)

    return start


def skew(times: int) -> None:
    """Beginnings of generators on two clients, by the one kernel's clock that they share here."""
    with ExitStack() as stack:
        clients = [_reached(name, stack, WRK_IMAGE) for name in ("c1", "c2")]
        apart, late = [], []
        for _ in range(times):
            words = [(machine, _gated(machine, "date", "+%s.%N")) for machine in clients]
            with generators.gated(words, tell=True) as running:
                running.begin()
                while running.wait(10) is None:
                    pass
                lines = [line for line in running.output().split() if line[0].isdigit()]
                begun = running.begun()
            apart.append(abs(float(lines[0]) - float(lines[1])) * 1e3)
            late += [(each.seen_at - each.word_at) * 1e3 for each in begun if each.seen_at]
    _row(f"generators on two clients begin apart by, {times} loads", apart, "ms")
    _row("a client is seen to have begun after its word", late, "ms")


def reader(times: int) -> None:
    """CPU of a reading, and how long it takes."""
    with ExitStack() as stack:
        machine = _reached("app", stack, WRK_IMAGE, METER_IMAGE)
        words = (
            "run",
            "--detach",
            "--rm",
            "--label",
            f"{RUN_LABEL}={RUN}",
            "--network",
            "host",
            "--entrypoint",
            "sleep",
        )
        name = machine.docker(*words, WRK_IMAGE, "300", seconds=60).stdout.split()[-1]
        stack.callback(lambda: machine.docker("rm", "--force", name, seconds=60))
        watched = MeterReader(machine, RUN, _pid(machine, name), 22)
        stack.callback(watched.close)
        own = machine.docker("ps", "--quiet", "--filter", f"ancestor={METER_IMAGE}", seconds=60).stdout.split()[0]
        meter = MeterReader(machine, RUN, _pid(machine, own))
        stack.callback(meter.close)
        before, took = meter.reading(), []
        for _ in range(times):
            time.sleep(1.0)
            began = time.monotonic()
            watched.reading()
            took.append((time.monotonic() - began) * 1e3)
        after = meter.reading()
        cpu = (after.cpu_seconds - before.cpu_seconds) / times
        print(f"| the reader, once a second | {cpu * 1e3:.2f} ms of CPU a reading: {cpu:.2%} of a CPU |")
        print(f"| its memory | {(after.rss or 0) / 2**20:.1f} MiB |")
        _row("a reading takes", took, "ms")


def cost(lab: Lab, times: int) -> None:
    """The same smoke run over the machines and on this one, in turns; CPU per request and what a run takes."""
    pairs = max(1, times // 10)
    seconds: dict[str, list[float]] = {"machines": [], "here": []}
    samples: dict[str, list[Sample]] = {"machines": [], "here": []}
    with tempfile.TemporaryDirectory() as scratch:
        _run(lab, Path(scratch), WHERE, ("--duration", "1"))  # sends the images
        for number in range(pairs):
            for kind in ("machines", "here")[:: 1 if number % 2 else -1]:
                began = time.monotonic()
                where = WHERE if kind == "machines" else ("--runtime", "docker")
                folder = _run(lab, Path(scratch), where, ("--duration", "5"))
                seconds[kind].append(time.monotonic() - began)
                samples[kind] += store.read(folder).samples
    _row(f"a smoke run of one cell over laptop, app, db and two clients ({pairs} runs)", seconds["machines"], "s")
    _row("the same on this machine, Docker", seconds["here"], "s")
    for kind, found in samples.items():
        _row(f"CPU a request, {kind}", [(s.cpu_per_request or 0) * 1e6 for s in found], "µs")


def lost(lab: Lab, only: str) -> None:
    """How long after a blow in the middle of a sample the run names the machine."""
    blows: tuple[tuple[str, Callable[[psutil.Process], None], Callable[[], None]], ...] = (
        ("a client switched off", lambda _: lab.kill("c1"), lambda: lab.start("c1")),
        ("the server's machine switched off", lambda _: lab.kill("app"), lambda: lab.start("app")),
        ("the ssh session to the server's machine killed", _kill_session, lambda: None),
        ("the link of a client cut", lambda _: lab.link("c1", "down"), lambda: lab.link("c1", "up")),
        ("the link of the server's machine cut", lambda _: lab.link("app", "down"), lambda: lab.link("app", "up")),
        ("the engine of a client hangs", lambda _: lab.hang("c2"), lambda: lab.wake("c2")),
        ("the engine of the server's machine hangs", lambda _: lab.hang("app"), lambda: lab.wake("app")),
    )
    for what, blow, heal in blows:
        if only not in what:
            continue
        with tempfile.TemporaryDirectory() as scratch:
            print(_struck(lab, Path(scratch), what, blow, heal), flush=True)
        lab.await_up(*namespaces.NAMES)


def sets(lab: Lab, _times: int) -> None:
    """Two sets (app with c1, db with c2) measure the same implementations; each alone, and both merged."""
    with tempfile.TemporaryDirectory() as scratch:
        results = Path(scratch)
        folders = []
        for seed in range(4):
            server, clients, name = (("app", "c1", "a"), ("db", "c2", "b"))[seed % 2]
            where = (
                "--server-host",
                server,
                "--database-host",
                server,
                "--client-host",
                clients,
                "--machine-set",
                name,
            )
            words = ("--test", "express", "vertx-web", "--type", "json", "--seed", str(seed), "--duration", "3")
            folders.append(_run(lab, results, where, words))
        for title, chosen in (("set a", folders[::2]), ("set b", folders[1::2]), ("both, merged", folders)):
            merged = merging.merge(chosen, "merged", reference="express", started_at=time.time())
            ranking = rank(merged.info, merged.samples, merged.replicates, merged.verdicts)
            print(f"\n== {title}", flush=True)
            terminal.show(merged.info, ranking, terminal.console())


WHERE = ("--server-host", "app", "--database-host", "db", "--client-host", "c1", "--client-host", "c2")


def _run(lab: Lab, results: Path, where: Sequence[str], words: Sequence[str]) -> Path:
    """A smoke run to its end; its folder."""
    chosen = words if "--test" in words else (*BUSY, *words)
    words = ("-m", "harness", *chosen, "--profile", "smoke", *where, "--results", str(results))
    command = [sys.executable, *words]
    if "--runtime" not in where:  # what runs here alone is not on the laptop, whose network has no engine
        command = lab.laptop(*command)
    done = process.run(command, seconds=BOUND_SECONDS, cwd=REPOSITORY, env=lab.environment)
    if done.status != 0:
        raise StartError(f"the run failed: {done.stdout[-1500:]}")
    return store.find(results, None)


def _struck(
    lab: Lab, results: Path, what: str, blow: Callable[[psutil.Process], None], heal: Callable[[], None]
) -> str:
    """One row: seconds until the run named the machine, and how it ended once the machine was back."""
    words = (*BUSY, "--profile", "smoke", "--duration", "15", *WHERE, "--results", str(results))
    log = results / "log"
    with log.open("wb") as output:
        child = process.Child(
            lab.laptop(sys.executable, "-m", "harness", *words), cwd=REPOSITORY, env=lab.environment, stdout=output
        )
    with process.running(child):
        until = time.monotonic() + BOUND_SECONDS
        while not _measuring(results):
            if child.poll() is not None or time.monotonic() > until:
                raise StartError(f"the run did not come to its sample: {process.tail(log)}")
            time.sleep(0.05)
        blow(psutil.Process(child.pid))
        began = time.monotonic()
        while "; waiting up to" not in log.read_text() and time.monotonic() - began < NAMED_SECONDS:
            time.sleep(0.02)
        named = time.monotonic() - began
        heal()
        status = child.wait(150)
    again = "measured again, exit code 0" if status == 0 else f"exit code {status}"
    line = next((text for text in log.read_text().splitlines() if "; waiting up to" in text), "not named").strip()
    return f"| {what} | {named:.1f} s | {again} | {line.partition(';')[0]} |"


def _measuring(results: Path) -> bool:
    """Whether the run is in its sample, not its warm-up."""
    found = list(results.glob("*/progress.json"))
    return bool(found) and '"c32"' in found[0].read_text()


def _kill_session(run: psutil.Process) -> None:
    """End the ssh that reaches the server's machine."""
    for child in run.children(recursive=True):
        words = child.cmdline()
        if words and words[0] == "ssh" and words[-1] == "app":
            child.kill()


def _reached(name: str, stack: ExitStack, *images: str) -> Machine:
    machine = stack.enter_context(reached(parse(name, "--client-host"), Path(tempfile.gettempdir())))
    for image in images:
        machine.send(image)
    return machine


def _gated(machine: Machine, *command: str) -> Sequence[str]:
    """A command in a container there that begins at its word, as generators do."""
    return [
        *(client() or "docker", *machine.at, "run", "--interactive", "--rm", "--init", "--pull", "never"),
        *("--network", "host", "--label", f"{RUN_LABEL}={RUN}", "--entrypoint", "sh", WRK_IMAGE),
        *("-c", generators.GATE, *command),
    ]


def _pid(machine: Machine, container: str) -> int:
    return int(machine.docker("inspect", "--format", "{{.State.Pid}}", container, seconds=60).stdout)


def _row(what: str, values: Sequence[float], unit: str) -> None:
    print(
        f"| {what} | median {statistics.median(values):.3g} {unit}, {min(values):.3g} to {max(values):.3g} |",
        flush=True,
    )


PIECES: dict[str, Callable[[Lab, int], None]] = {
    "skew": on_the_laptop("skew"),
    "reader": on_the_laptop("reader"),
    "cost": cost,
    "sets": sets,
}
INSIDE = {"skew": skew, "reader": reader}

if __name__ == "__main__":
    command(main)
