"""Load generators on several clients split a load and start at the same time."""

import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from harness.errors import LoadError, MachineLostError
from harness.extras.deployments.connected_machine import ConnectedMachine
from harness.extras.deployments.distributed_load import WAIT_FOR_GO, ClientShare, shares, start_generators
from harness.host import process

URL = "http://app:8080/json"


def test_shares_add_up_and_clients_have_threads() -> None:
    parts = [part.arguments for part in shares("wrk", ["-c", "65", "-t", "4", "--latency", URL], 2)]
    assert parts == [["-c", "33", "-t", "2", "--latency", URL], ["-c", "32", "-t", "2", "--latency", URL]]
    one = ClientShare(connections=1, threads=1, arguments=["-c", "1", "-t", "1", URL])
    assert shares("wrk", ["-c", "2", "-t", "8", URL], 2) == [one] * 2
    own = [part.arguments for part in shares("loadgen", ["--connections", "3", "--threads", "1", URL], 3)]
    assert own == [["--connections", "1", "--threads", "1", URL]] * 3

    with pytest.raises(LoadError, match="1 connections cannot be divided among 2 clients"):
        shares("wrk", ["-c", "1", "-t", "1"], 2)


def clients(*scripts: str, before: str = "true") -> list[tuple[ConnectedMachine, ClientShare, Sequence[str]]]:
    """Return a client for each script, which replaces the client's load generator. All clients are this machine."""
    machines = [ConnectedMachine(name=f"c{n}", address="", engine=()) for n, _ in enumerate(scripts, 1)]
    parts = [ClientShare(connections=9 + n, threads=1, arguments=()) for n, _ in enumerate(scripts, 1)]
    commands: list[Sequence[str]] = [["sh", "-c", f"{before}; {WAIT_FOR_GO}", "sh", "-c", script] for script in scripts]
    return [*zip(machines, parts, commands, strict=True)]


def test_generators_begin_together_and_record_their_start(tmp_path: Path) -> None:
    quick = clients(f"date +%s.%N > {tmp_path}/quick")
    slow = clients("", f"date +%s.%N > {tmp_path}/slow", before="sleep 0.3")[1:]
    with start_generators([*quick, *slow], reports_start=True) as running:
        started_at = time.time()
        running.begin()
        assert running.wait(10) == 0
        first, second = running.starts()
    times = [float((tmp_path / name).read_text()) for name in ("quick", "slow")]
    assert all(each >= started_at + 0.2 for each in times)
    assert [(each.client, each.connections) for each in (first, second)] == [("c1", 10), ("c2", 11)]
    assert first.start_seen_at is not None
    assert first.go_sent_at <= second.go_sent_at <= first.start_seen_at


def test_failure_of_one_generator_ends_the_others() -> None:
    with start_generators(clients("echo a", "sleep 0.5; echo b")) as running:
        running.begin()
        assert running.wait(0.1) is None
        assert running.wait(10) == 0
        assert [line for line in running.output().splitlines() if len(line) == 1] == ["a", "b"]
    with start_generators(clients("exit 7", "exec sleep 60")) as running:
        running.begin()
        started_at = time.monotonic()
        while (status := running.wait(0.1)) is None:
            pass
        assert status == 7
    assert time.monotonic() - started_at < 20


def test_ended_ssh_session_is_a_lost_machine() -> None:
    with process.running(process.Child(["true"])) as link, start_generators(clients("exec sleep 60")) as running:
        running.begin()
        link.wait(5)
        lost = ConnectedMachine(name="db", address="", engine=(), link=link)
        with start_generators(clients("exec sleep 60"), [lost]) as other:
            other.begin()
            with pytest.raises(MachineLostError, match="the machine db is lost: the ssh session ended"):
                other.wait(1.0)
        assert running.wait(0.1) is None
