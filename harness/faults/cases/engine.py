"""The same on Docker: containers killed or out of memory, images and networks gone, an engine that hangs or is off."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from functools import partial

from harness.errors import EnvironmentLacksError
from harness.faults.case import BrokenPromise, CannotBeProducedError, Case, hold
from harness.faults.scene import Scene
from harness.paths import REPOSITORY
from harness.runtime import compose
from harness.runtime.docker import BASE

DOCKERFILE = f"""FROM {BASE}
COPY server.pl /server.pl
CMD ["perl", "/server.pl", "@MODE@"]
"""
SERVER = REPOSITORY / "harness" / "tests" / "e2e" / "fake_server.pl"
FLOOD = "my $line = 'x' x 1000; print \"$line\\n\" for 1..60000; exit 3;"


def client() -> str:
    """The docker client; raises CannotBeProducedError without an engine."""
    try:
        compose.engine()
    except EnvironmentLacksError as error:
        raise CannotBeProducedError(str(error)) from error
    return compose.client() or "docker"


def docker(*words: str) -> str:
    """What a docker command prints."""
    return subprocess.run([client(), *words], check=False, capture_output=True, text=True, timeout=120).stdout.strip()


def add(place: Scene, name: str, mode: str = "good") -> None:
    """An implementation with an image of its own."""
    # Its local block says that it is written for this harness: without one it would run as TechEmpower runs it.
    entry: dict[str, object] = {"language": "Perl", "json_url": "/json", "local": {"run": ["false"]}}
    path = place.write(name, json.dumps({"framework": name, "tests": [{"default": entry}]}).encode())
    (path.parent / f"{name}.dockerfile").write_text(DOCKERFILE.replace("@MODE@", mode), encoding="utf-8")
    program = FLOOD if mode == "log" else SERVER.read_text(encoding="utf-8")
    (path.parent / "server.pl").write_text(program, encoding="utf-8")


def mine(place: Scene, *more: str) -> list[str]:
    """Ids of containers of the newest run here."""
    runs = sorted(path.name for path in place.results.iterdir() if path.is_dir())
    words = ("ps", "--all", "--quiet", "--filter", f"label={compose.RUN_LABEL}={runs[-1]}") if runs else ("version",)
    return docker(*words, *more).split() if runs else []


def _run(strike: Callable[[Scene], object], place: Scene, *flags: str, stage: str = "measure") -> tuple[int, str]:
    """Strike in the middle of a run; exit status and output. No container is left."""
    client()
    add(place, "one")
    run = place.started("--test", "one", "--type", "json", *flags)
    try:
        place.until(lambda: place.stage() == stage, stage, seconds=240)
        strike(place)
        status = run.wait(240)
    finally:
        run.kill()
        run.wait()
    hold("Traceback" not in place.log(), else_=place.log()[-500:])
    left = mine(place)
    hold(not left, else_=f"containers are left: {left}")
    return status, place.log()


def _service(place: Scene, service: str) -> str:
    found = mine(place, "--filter", f"label=com.docker.compose.service={service}")
    if not found:
        raise BrokenPromise(f"no container of {service}")
    return found[0]


def _server_killed(place: Scene) -> None:
    status, log = _run(lambda p: docker("kill", _service(p, "tfb-server")), place)
    hold(status == 1 and "killed by SIGKILL" in log, else_=f"{status}: {log[-400:]!r}")


def _server_removed(place: Scene) -> None:
    status, log = _run(lambda p: docker("rm", "--force", _service(p, "tfb-server")), place)
    hold(status == 1 and "its container is gone" in log, else_=f"{status}: {log[-400:]!r}")


def _database_killed(place: Scene) -> None:
    status, log = _run(lambda p: docker("kill", _service(p, "tfb-database")), place)
    hold("PostgreSQL" in log and "measured again" in log, else_=log[-400:])
    hold(status == 0, else_=f"exit status {status}: {log[-400:]!r}")


def _memory(place: Scene) -> None:
    client()
    add(place, "one", "out-of-memory")
    answer = place.measure("--test", "one", "--type", "json", "--test-container-memory", "64m", seconds=240)
    answer.ends(1).says("out of memory: it reached its limit of 64 MiB")


def _log(place: Scene) -> None:
    client()
    add(place, "one", "log")
    answer = place.measure("--test", "one", "--type", "json", seconds=240)
    answer.ends(1).says("one replicate 1: ")
    big = [path for path in place.results.rglob("*.log") if path.stat().st_size > 25 << 20]
    hold(not big, else_=f"{big}")


def _image_vanished(place: Scene) -> None:
    """The implementation's image is removed between its build and its start."""
    client()
    add(place, "gone")
    add(place, "one")
    run = place.started("--test", "gone", "one", "--type", "json")
    try:
        place.until(lambda: "building one" in place.log(), "building one", seconds=240)
        docker("image", "rm", "--force", "tfb/gone")
        status = run.wait(240)
    finally:
        run.kill()
        run.wait()
    hold(status == 1 and "gone" in place.log(), else_=f"{status}: {place.log()[-400:]!r}")
    measured = {sample.implementation for sample in place.records().samples if sample.rankable}
    hold("one" in measured, else_=f"the other was not measured: {place.log()[-400:]!r}")


def _network_gone(place: Scene) -> None:
    def strike(place: Scene) -> None:
        server, network = _service(place, "tfb-server"), docker("network", "ls", "--quiet", "--filter", "name=_tfb")
        for name in network.split():
            docker("network", "disconnect", "--force", name, server)

    status, log = _run(strike, place, "--network-mode", "bridge")
    hold(status in (0, 1) and ("!" in log or status == 0), else_=f"{status}: {log[-400:]!r}")


def _killed(place: Scene) -> None:
    """The harness is killed: the next start removes its containers."""
    client()
    add(place, "one")
    run = place.started("--test", "one", "--type", "json")
    try:
        place.until(lambda: place.stage() == "measure", "measure", seconds=240)
        run.kill()
        run.wait()
        left = mine(place)
        hold(bool(left), else_="no container was left: the case shows nothing")
        place.tfb("doctor", seconds=120).says("left by a run that was killed: container")
        place.tfb("clean", "--leftovers", "--yes", seconds=120).ends(0)
        hold(not mine(place), else_="containers are left")
    finally:
        run.kill()
        run.wait()
        for identity in mine(place):
            docker("rm", "--force", identity)


def _next_run(place: Scene) -> None:
    """As above, and the next run does it."""
    client()
    add(place, "one")
    run = place.started("--test", "one", "--type", "json")
    place.until(lambda: place.stage() == "measure", "measure", seconds=240)
    run.kill()
    run.wait()
    left = mine(place)
    words = (word for word in place.words("--test", "one", "--type", "json") if word != "--no-install")
    time.sleep(1.1)  # a run's name has seconds
    place.tfb(*words, "--yes", seconds=240).ends(0)
    still = docker("ps", "--all", "--quiet", "--no-trunc").split()
    hold(not any(identity.startswith(tuple(left)) for identity in still), else_="containers are left")


def _interrupted(number: signal.Signals, place: Scene) -> None:
    client()
    add(place, "one")
    run = place.started("--test", "one", "--type", "json")
    try:
        place.until(lambda: place.stage() == "measure", "measure", seconds=240)
        run.send_signal(number)
        status = run.wait(60)
    finally:
        run.kill()
        run.wait()
    hold(status == 130, else_=f"exit status {status}")
    hold(not mine(place), else_="containers are left")


def _stand_in(script: str, says: str, status: int, place: Scene) -> None:
    """A docker client that behaves as one of a broken engine does, first on PATH."""
    folder = place.root / "bin"
    folder.mkdir()
    (folder / "docker").write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    (folder / "docker").chmod(0o755)
    add(place, "one")
    place.runtime = "docker"
    answer = place.measure(
        "--test", "one", "--type", "json", env={"PATH": f"{folder}:{os.environ['PATH']}"}, seconds=150
    )
    answer.ends(status).says(says)


VERSION = 'case "$1 $2" in "compose version") echo 2.30; exit 0;; esac'
STAND_INS = {
    "hangs": ("an engine that never answers", f"{VERSION}; sleep 600", "does not answer within", 3),
    "refuses": ("an engine that is stopped", f"{VERSION}; echo Cannot connect; exit 1", "no Docker engine answers", 3),
    "forbids": ("an engine whose socket is forbidden", f"{VERSION}; echo permission denied; exit 1", "group docker", 3),
    "garbage": (
        "an engine that answers nonsense",
        f'{VERSION}; case "$1" in version) echo 27; exit 0;; esac; echo "\\033[2J<<<"; exit 0',
        "",
        1,
    ),
}
CASES = (
    *(
        Case(name=f"docker/{name}", fault=fault, promise=promise, produce=produce, runtime="docker")
        for name, fault, promise, produce in (
            ("server-killed", "the server's container killed under load", "named with its signal", _server_killed),
            ("server-removed", "the server's container removed under load", "named", _server_removed),
            ("database-killed", "PostgreSQL's container killed in a run", "named, measured again", _database_killed),
            ("memory", "a server beyond its memory limit", "named with its limit", _memory),
            ("log", "a server that writes 60 MB of log", "named; the log is bounded", _log),
            ("image-gone", "an image removed after its build", "the other is measured", _image_vanished),
            ("network-gone", "the network taken from the server", "ends with what there is", _network_gone),
            ("killed", "SIGKILL to the harness", "doctor names and clean removes its containers", _killed),
            ("killed-next", "SIGKILL to the harness, and another run", "which removes its containers", _next_run),
        )
    ),
    *(
        Case(
            name=f"docker/{number.name.removeprefix('SIG').lower()}",
            fault=f"{number.name} to the harness under load",
            promise="exit status 130, no container is left",
            produce=partial(_interrupted, number),
            runtime="docker",
        )
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    ),
    *(
        Case(
            name=f"docker/engine-{name}",
            fault=fault,
            promise="an exit status and a line of its own, in bounded time",
            produce=partial(_stand_in, script, says, status),
            runtime="docker",
        )
        for name, (fault, script, says, status) in STAND_INS.items()
    ),
)
