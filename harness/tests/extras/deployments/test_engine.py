"""Remote machines and containers, with fake docker and ssh programs. A local process takes each container's place."""

import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.errors import EnvironmentLacksError, Exit, MachineLostError, ServerDiedError, StartError
from harness.extras.deployments import remote_container as containers
from harness.extras.deployments.connected_machine import ConnectedMachine, reached
from harness.extras.deployments.remote_container import RemoteContainer
from harness.extras.deployments.survey import clean, doctor
from harness.host import ownership, process
from harness.paths import REPOSITORY, TOOLSET
from harness.plan.hosts import hosts_from_flags, parse_host

pytestmark = pytest.mark.skipif(not Path("/sys/fs/cgroup").is_dir(), reason="no control groups here")

# Container ids are PIDs. If the file ``gone`` exists, the engine fails. If ``mute`` exists, the meter is silent.
DOCKER = f"""#!/bin/sh
PLACE=$(dirname "$0")
case $1 in --context|-H) shift 2 ;; esac
for last; do before=$now; now=$last; done
[ -e "$PLACE/gone" ] && echo "no engine" && exit 1
case "$*" in
  version*) echo 26.1 ;;
  ps*) [ ! -e "$PLACE/kept" ] || cat "$PLACE/kept" ;;
  *rm*--force*) echo "it is held"; exit 1 ;;
  info*) echo '{{"Name": "there", "NCPU": 8, "ServerVersion": "26.1"}}' ;;
  logs*) exec tail --pid=$last -f /dev/null ;;
  *inspect*--format*) [ -d /proc/$last ] && echo "then $last" ;;
  *inspect*) echo '[{{"Id": "1", "State": {{"Running": false, "OOMKilled": false, "ExitCode": 137, "Error": ""}},
                    "HostConfig": {{"Memory": 0}}, "Config": {{"Labels": {{"org.tfb.image": "tfb/meter"}}}}}}]' ;;
  *link.py*) while [ "$1" != /link.py ]; do shift; done; shift; exec {sys.executable} {TOOLSET}/meter/link.py "$@" ;;
  *tfb/meter*) [ -e "$PLACE/mute" ] && exec sleep 60
    PYTHONPATH={REPOSITORY} exec {sys.executable} -S {TOOLSET}/meter/meter.py $before $last ;;
esac
"""
# Forwards the engine's socket and keeps running, except that the host "other" always fails.
SSH = """#!/bin/sh
case " $* " in *" other "*) echo "Host key verification failed."; exit 255 ;; esac
for word; do
  case $word in *d.sock:*) touch "${word%%:*}" ;; esac
done
exec sleep 60
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Create both fake programs in a folder, put it first on PATH, and return it."""
    for name, text in (("docker", DOCKER), ("ssh", SSH)):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("TFB_STATE", str(tmp_path / "state"))
    return tmp_path


@pytest.fixture
def server() -> Iterator[process.Child]:
    with process.running(process.Child(["sleep", "60"])) as child:
        yield child


def there(child: process.Child, place: Path) -> RemoteContainer:
    machine = ConnectedMachine(name="app", address="127.0.0.1", engine=("--context", "app"))
    return RemoteContainer("express", str(child.pid), place / "log", machine, "run", port=1)


def test_killed_container_is_reported_with_its_machine(place: Path, server: process.Child) -> None:
    error = there(server, place)
    server.kill()
    server.wait(5)
    deadline = time.monotonic() + 20
    while error.alive() and time.monotonic() < deadline:
        time.sleep(0.1)
    with pytest.raises(ServerDiedError, match="express: its container on app has exited: killed by SIGKILL"):
        error.require_alive()
    error.close()
    with pytest.raises(StartError, match="exited at once: killed by SIGKILL"):
        there(server, place)


def test_silent_reader_is_a_lost_machine(place: Path, server: process.Child, monkeypatch: pytest.MonkeyPatch) -> None:
    (place / "mute").touch()
    monkeypatch.setattr(containers, "OPEN_SECONDS", 0.3)
    with pytest.raises(MachineLostError, match="the machine app has not responded"):
        there(server, place)


def test_connection_lasts_as_long_as_its_session(place: Path) -> None:
    with reached(parse_host("app=10.0.0.2", "--server-host"), place) as machine:
        machine.require_response()
        assert (machine.address, machine.link is not None) == ("10.0.0.2", True)
        (place / "gone").touch()
        with pytest.raises(MachineLostError, match=r"the engine of the machine app=.* does not respond: no engine"):
            machine.require_response()
    for name, said in (
        ("app", "is reachable over ssh, but no Docker engine responds"),
        ("other", "Host key verification failed"),
    ):
        with pytest.raises(EnvironmentLacksError, match=said), reached(parse_host(name, "--server-host"), place):
            pass


def test_doctor_shows_machines_roles_and_links(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, two = "context:one=127.0.0.1", "context:two=127.0.0.1"
    hosts = hosts_from_flags(one, one, (one, two))
    assert doctor(hosts, as_json=False) == Exit.OK
    said = capsys.readouterr().out
    assert f"server, database, client 1: {one}" in said
    assert f"{one} → {two}: round trip" in said
    assert doctor(hosts, as_json=True) == Exit.OK
    (link,) = json.loads(capsys.readouterr().out)["links"]
    assert link["throughput"] > 1e6
    pid, _, rest = ownership.own_identity().split(".", 2)
    (place / "kept").write_text("\t".join(("a" * 64, f"{pid}.1.{rest}", "run", "of-a-dead-run")))
    unnamed = hosts_from_flags("context:one", "context:one", ("context:two",))
    assert clean(unnamed, dry_run=True) == Exit.OK
    assert clean(unnamed, dry_run=False) == Exit.FAILED
    assert "of-a-dead-run of run run: it is held" in capsys.readouterr().out
    (place / "gone").touch()
    assert clean(hosts, dry_run=True) == Exit.FAILED
    assert "does not respond" in capsys.readouterr().out


def test_an_engine_that_hangs_is_a_lost_machine(place: Path) -> None:
    (place / "docker").write_text("#!/bin/sh\nexec sleep 60\n")
    machine = ConnectedMachine(name="app", address="", engine=("--context", "app"))
    with pytest.raises(MachineLostError, match="the engine of the machine app has not responded for 1 s"):
        machine.docker("version", seconds=1)
    with pytest.raises(MachineLostError):
        machine.require_reachable()
