"""The command line of a scenario, and the document that the generator prints of it."""

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from harness.errors import LoadError
from harness.measure.loadgen import Load, scenario
from harness.measure.loadgen.scenario import Scenario, prepared
from harness.records.models import Errors
from harness.tests.measure.loadgen.test_own import distribution

URL = "http://127.0.0.1:8080/orders"
LOAD = Load(url=URL, host="tfb-server", accept="application/json", seconds=8, connections=64, threads=2)
NO_ERRORS = {"connect": 0, "read": 0, "write": 0, "timeout": 0, "status": 0}


def operation(name: str, answered: int, unfinished: int = 0, **errors: int) -> dict[str, Any]:
    return {
        "use_case": "shop",
        "operation": name,
        "due": answered + unfinished + sum(errors.values()),
        "answered": answered,
        "unfinished": unfinished,
        "errors": {**NO_ERRORS, **errors},
        "response_time": distribution((2_000_000, answered)) if answered else None,
        "service_time": distribution((1_000_000, answered)) if answered else None,
    }


def document(**changes: object) -> dict[str, Any]:
    return {
        "kind": "scenario",
        "seconds": 8.0,
        "arrivals_due": 40,
        "arrivals_done": 36,
        "arrivals_failed": 3,
        "unfinished": 1,
        "in_time": {"due": 77, "answered": 72, "arrivals_done": 35},
        "operations": [operation("create order", 37, status=2, timeout=1), operation("read order", 36, unfinished=1)],
        "use_cases": [
            {
                "use_case": "shop",
                "due": 40,
                "done": 36,
                "failed": 3,
                "unfinished": 1,
                "response_time": distribution((4_000_000, 36)),
            }
        ],
        "lag": distribution((20_000, 77)),
        "cpu_seconds": 0.25,
        "bytes": {"received": 9000, "sent": 8000},
        "connections": {"asked": 64, "opened": 64, "refused": 2},
        **changes,
    }


def printed(**changes: object) -> str:
    return "\n".join(json.dumps(line) for line in ({"kind": "ready", "ready": True}, document(**changes)))


def test_the_plan_is_a_file_beside_the_answers_and_the_url_names_the_server_alone(tmp_path: Path) -> None:
    generator = prepared(Scenario(program="/bin/x", drain_seconds=3), {"use_cases": []}, 7, tmp_path)
    words = list(generator.arguments(LOAD))
    assert json.loads((tmp_path / "plan.json").read_text()) == {"use_cases": []}
    assert words[:5] == [
        "--scenario",
        str(tmp_path / "plan.json"),
        "--answers",
        str(tmp_path / "answers.jsonl"),
        "--wait-for-go",
    ]
    assert words[-1] == "http://127.0.0.1:8080"
    pairs = dict(itertools.pairwise(words))
    assert (pairs["--connections"], pairs["--threads"], pairs["--seconds"]) == ("64", "2", "8")
    assert (pairs["--seed"], pairs["--drain-seconds"]) == ("7", "3")
    assert next(word for word in words if ": " in word) == "Host: tfb-server"
    assert (generator.folder, generator.waits_for_go, generator.timeout_seconds) == (tmp_path, True, 11)


def test_arrivals_and_requests_are_told_apart() -> None:
    result = Scenario().result(LOAD, printed())
    played = result.played
    assert played is not None
    assert (played.due, played.done, played.failed, played.unfinished) == (40, 36, 3, 1)
    assert (played.requests_due, played.requests_answered, played.requests_unfinished) == (77, 72, 1)
    assert result.requests == 75  # complete answers, bad ones too
    assert result.errors == Errors(connect=2, timeout=2, status=2)
    create = played.operations[0]
    assert (create.operation, create.due, create.answered, create.errors) == (
        "create order",
        40,
        37,
        Errors(timeout=1, status=2),
    )
    assert create.latency is not None
    assert create.latency.basis == "open-loop, intended send time"
    assert create.latency.percentiles["99"] == pytest.approx(0.002)
    assert create.service is not None
    assert create.service.percentiles["50"] == pytest.approx(0.001)
    assert played.use_cases[0].latency is not None
    assert played.use_cases[0].latency.mean == pytest.approx(0.004)
    assert result.latency is not None
    assert sum(count for _, count in result.latency.histogram) == 73
    assert played.lag_p99 == pytest.approx(20e-6)
    assert played.sent_late is not None
    assert (played.sent_late(10e-6) > 0, played.sent_late(1.0)) == (True, 0)


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("", "no result for .*: nothing at all"),
        ('{"kind": "ready"}', "no result for"),
        (printed(seconds=0.0), "no duration"),
        (printed(operations=3), "not as documented"),
        (printed(unfinished=2), "do not add up: 40 arrivals, 41 ended"),
        (printed(operations=[{**operation("create order", 5), "due": 6}]), "do not add up"),
    ],
)
def test_what_no_load_prints_is_refused(output: str, message: str) -> None:
    with pytest.raises(LoadError, match=message):
        scenario.read(output, URL)
