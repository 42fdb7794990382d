"""Tests for the stopping rule."""

import math

import numpy as np
import pytest

from harness.plan.profile import ProcessLimits
from harness.records.loads import ClosedLoop
from harness.records.trial_record import Trial
from harness.stats.stopping import alpha_at, planned_looks, profile_section, undecided
from harness.studies.coverage import SimulatedRun, draw_run
from harness.tests.approve import approve
from harness.tests.doubles.runs import LOAD, run_info, trial, trials
from harness.tests.stats.dense import luck

RULES = {
    "usual": ProcessLimits(minimum=3, maximum=10, looks=(3, 5), half_width=0.02),
    "once": ProcessLimits(minimum=1, maximum=1),
    "beyond": ProcessLimits(minimum=3, maximum=6, looks=(2, 3, 6, 9)),
    "wide": ProcessLimits(minimum=2, maximum=9, looks=(4, 2, 7), half_width=0.05),
}
ALL = [(name, kind) for kind in ("json", "db", "query") for name in "abcde" if (name, kind) != ("e", "db")]
ALL += [("a", "one"), ("a", "none")]  # the only server of a test type, and a server without trials
APART = {"a": 0.0, "b": 0.012, "c": 0.06, "d": 0.3, "e": 0.33}


def stepwise(noise: float, lost: tuple[str, ...] = ()) -> list[Trial]:
    """Return trials whose pairs are decided at different looks. ``noise`` is the log-scale noise of CPU per request."""
    two = ClosedLoop(connections=64, queries=1), ClosedLoop(connections=64, queries=20)
    return [
        trial(
            name, 1e3 * math.exp(0.01 * luck(name, kind, p) + (1 + 0.1 * luck(name, p) if load == two[0] else gap)), p,
            test_type=kind, load=load, cpu_per_request=1e-3 * math.exp(noise * luck(name, kind, p, "cpu")),
        )
        for name, kind in ALL[:-1]
        for gap in [APART[name] * (kind != "json" or 0.3)]
        if name not in lost
        for load in (two if kind == "query" else (LOAD,))
        for p in range(3 if (name, kind) == ("d", "db") else 10)
    ]  # fmt: skip


def test_undecided_cells_and_look_errors_as_approved() -> None:
    results: dict[str, object] = {
        name: {"looks": planned_looks(each), "alpha": [alpha_at(each, count) for count in range(1, 12)]}
        for name, each in RULES.items()
    }
    for name, rules in RULES.items():
        all_trials = stepwise(0.05 if name == "wide" else 0.004, ("b", "d") if name == "beyond" else ())
        by_count = ([t for t in all_trials if t.process < count] for count in range(rules.maximum + 1))
        waiting = [undecided(trials, ALL, rules) for trials in by_count]
        results[f"waiting {name}"] = [" ".join(f"{kind[0]}{each}" for each, kind in own) or "none" for own in waiting]
    info = run_info(["a"], RULES["wide"])
    others = [{}, {"profile": 3}, {"profile": {}}, {"profile": {"processes": {"least": 1}}}, info.settings]
    read = [
        profile_section(info.model_copy(update={"settings": each}), "processes", ProcessLimits).half_width
        for each in others
    ]
    approve("stats-stopping", {**results, "half-widths": read})


NAMES = ["a", "b", "c"]
EXPECTED = [(name, "json") for name in NAMES]


def measured(truth: tuple[float, ...], processes: int, noise: float = 0.02) -> list[Trial]:
    world = SimulatedRun(
        truth=truth, processes=processes, tables=1, process=noise, window=noise, correlation=0.0, drift=0.0
    )
    return trials({("json", LOAD): draw_run(world, np.random.default_rng(2))[0]}, NAMES)


def test_the_looks_share_out_the_error() -> None:
    assert sum(alpha_at(RULES["usual"], look) for look in (3, 5, 10)) == pytest.approx(0.05)
    assert alpha_at(RULES["usual"], 4) == alpha_at(RULES["usual"], 5)


@pytest.mark.parametrize(
    ("truth", "processes", "noise", "waiting"),
    [
        ((0, 1, 2), 2, 0.02, EXPECTED),  # all cells wait for the first look
        ((0, 1, 2), 3, 0.02, []),  # the first look decides clear differences
        ((0.0, 0.0, 2.0), 3, 0.02, EXPECTED[:2]),  # undecided neighbours need more processes
        ((0.0, 0.0, 2.0), 5, 0.001, []),  # a tie with narrow intervals needs no more processes
        ((0.0, 0.0, 0.0), 10, 0.02, []),  # no processes beyond the maximum
    ],
)
def test_what_is_not_decided_at_a_look_waits(
    truth: tuple[float, ...], processes: int, noise: float, waiting: list[tuple[str, str]]
) -> None:
    assert list(undecided(measured(truth, processes, noise), EXPECTED, RULES["usual"])) == waiting


def test_what_was_decided_at_a_look_stays_decided() -> None:
    remaining = [t for t in measured((0.0, 0.0, 2.0), 5) if t.implementation != "c" or t.process < 3]
    assert undecided(remaining, EXPECTED, RULES["usual"]) == EXPECTED[:2]
