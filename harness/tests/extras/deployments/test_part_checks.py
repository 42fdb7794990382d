"""``./tfb report RUN RUN …`` joins runs that each measured a part of a selection."""

import json
import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from harness import cli
from harness.errors import Exit
from harness.plan.profile import ProcessLimits
from harness.records import store
from harness.records.run_info import Part
from harness.stats.ranking import rank
from harness.stats.ranking_model import Ratio
from harness.tests.doubles import records, runs

NAMES = ("ref", "a", "b")
WOBBLE = (0.02, -0.01, -0.03, 0.02)  # log-scale deviation of each process
SWAPPED = (-0.01, 0.02, 0.02, -0.03)


def part(
    results: Path, number: int, costs: Mapping[str, float], *, count: int = 2, speed: float = 1.0,
    selection: tuple[str, ...] = NAMES, **told: object,
) -> Path:  # fmt: skip
    """Record a part, measured on a machine of the relative speed ``speed``.

    The baseline's processes deviate independently of the other servers' processes.
    """
    rules = ProcessLimits(minimum=len(WOBBLE), maximum=len(WOBBLE))
    info = runs.run_info(tuple(costs), rules, reference="ref")
    own = {
        "run_id": f"part-{number}",
        "started_at": float(number),
        "revision": "c" * 40,
        "dirty": False,
        "part": Part(number=number, count=count, selection=selection),
    }
    trials = [
        runs.trial(name, speed * 1000 * math.exp(cost + deviation), process)
        for name, cost in costs.items()
        for process, deviation in enumerate(WOBBLE if name == "ref" else SWAPPED)
    ]
    verdicts = [records.verdict(name, "json") for name in costs]
    records.stored(results / f"part-{number}", info.model_copy(update={**own, **told}), trials, verdicts)
    return results / f"part-{number}"


def report(results: Path, *arguments: str) -> int:
    return cli.main(["report", *arguments, "--results", str(results)])


def ratio(results: Path, name: str, to: str) -> Ratio:
    """Return the ratio of two servers' throughputs in the merged run."""
    (folder,) = results.glob("*-merged")
    merged = store.read_run(folder)
    info = merged.info.model_copy(update={"reference": to})
    ranking = rank(info, merged.trials, merged.processes, merged.verdicts)
    rows = {row.implementation: row for row in ranking.test_types["json"].headline.rows}
    found = rows[name].throughput.to_reference
    assert found is not None
    return found


def half_width(found: Ratio) -> float:
    return math.log(found.high / found.low) / 2


def test_ratios_join_through_the_baseline(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The second machine is three times as fast. This must not affect ratios."""
    part(tmp_path, 1, {"ref": 0.0, "a": 0.5})
    part(tmp_path, 2, {"ref": 0.0, "b": 0.8}, speed=3.0)
    assert report(tmp_path, "part-1", "part-2") == Exit.OK
    output = capsys.readouterr()
    assert "merged 2 parts" in output.err
    assert "joins 2 parts: ratios between parts are computed through ref" in " ".join(output.out.split())
    expected = {("a", "ref"): 0.5, ("b", "ref"): 0.8, ("b", "a"): 0.3}
    found = {pair: ratio(tmp_path, *pair) for pair in expected}
    for pair, difference in expected.items():
        logs = np.log(np.asarray([found[pair].value, found[pair].low, found[pair].high], dtype=float))
        own = difference + np.mean(SWAPPED) - np.mean(WOBBLE) if pair[1] == "ref" else difference
        assert logs[0] == pytest.approx(own, abs=1e-9), pair
        assert logs[1] < difference < logs[2]
    # A ratio between parts combines two ratios to the baseline, whose variances are equal here.
    single, joined = half_width(found["a", "ref"]), half_width(found["b", "a"])
    assert half_width(found["b", "ref"]) == pytest.approx(single, rel=0.05)
    assert joined == pytest.approx(math.sqrt(2) * single, rel=0.05)


def test_ratio_within_a_part_needs_no_baseline(tmp_path: Path) -> None:
    costs = {"ref": 0.0, "a": 0.5, "b": 0.8}
    part(tmp_path, 1, costs, selection=(*NAMES, "c"))
    part(tmp_path, 2, {"ref": 0.0, "c": 0.1}, speed=3.0, selection=(*NAMES, "c"))
    assert report(tmp_path, "part-1", "part-2") == Exit.OK
    within, between = ratio(tmp_path, "b", "a"), ratio(tmp_path, "c", "a")
    assert within.value == pytest.approx(math.exp(0.3))
    assert half_width(within) < 0.9 * half_width(between)


def test_merged_run_records_the_parts(tmp_path: Path) -> None:
    part(tmp_path, 2, {"ref": 0.0, "b": 0.8})
    part(tmp_path, 1, {"ref": 0.0, "a": 0.5})
    assert report(tmp_path, "part-2", "part-1", "--format", "json") == Exit.OK
    (folder,) = tmp_path.glob("*-merged")
    info = store.read_info(folder)
    assert info.part == Part(number=0, count=2, selection=NAMES)
    assert {each.name for each in info.implementations} == {*NAMES}
    assert [each.runs for each in info.sets] == [("part-2",), ("part-1",)]
    assert info.processes_expected == len(WOBBLE)
    assert json.loads((folder / "run.json").read_text(encoding="utf-8"))["part"]["number"] == 0


def test_report_names_the_part(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    part(tmp_path, 2, {"ref": 0.0, "b": 0.8})
    assert report(tmp_path, "part-2") == Exit.OK
    assert "the run is part 2 of 2, with 2 of 3 implementations" in " ".join(capsys.readouterr().out.split())


OTHER_MACHINE = runs.MACHINE.model_copy(update={"cpu_model": "faster"})


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ({"number": 1}, "are both part 1/2: expected each part once"),
        ({"count": 3}, "is a part of a different selection (3 parts of 3 implementations instead of 2 parts"),
        ({"told": {"part": None}}, "is not a part, but other runs are"),
        ({"costs": {"ref": 0.0, "a": 0.5}}, "do not match the selection: a in 2, b in 0 of 2 parts"),
        ({"costs": {"b": 0.8}}, "do not match the selection: ref in 1 of 2 parts"),
        ({"costs": {"ref": 0.0, "b": 0.8, "c": 0.1}}, "do not match the selection: c in 1 of 2 parts"),
        ({"told": {"revision": "d" * 40}}, "commit: cccccccccccc and dddddddddddd"),
        ({"told": {"dirty": True}}, "uncommitted changes"),
        ({"told": {"machine": OTHER_MACHINE}}, "CPU:  and faster"),
        ({"told": {"reference": "b"}}, "differs from the first run in reference"),
    ],
)
def test_parts_that_do_not_fit(
    second: dict[str, object], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    part(tmp_path, 1, {"ref": 0.0, "a": 0.5})
    other = tmp_path / "other"
    told = second.pop("told", {})
    folder = part(other, **{"number": 2, "costs": {"ref": 0.0, "b": 0.8}, **second, **told, "started_at": 9.0})  # type: ignore[arg-type,dict-item]
    assert report(tmp_path, "part-1", str(folder)) == Exit.USAGE
    assert message in capsys.readouterr().err
    assert not [*tmp_path.glob("*-merged")]


def test_missing_part_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    part(tmp_path, 1, {"ref": 0.0, "a": 0.5}, count=3)
    part(tmp_path, 3, {"ref": 0.0, "b": 0.5}, count=3)
    assert report(tmp_path, "part-1", "part-3") == Exit.USAGE
    assert "part 2/3 is missing: expected all 3 parts. Measure it with --part 2/3" in capsys.readouterr().err


def test_two_unknown_commits_differ(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number, name in ((1, "a"), (2, "b")):
        part(tmp_path, number, {"ref": 0.0, name: 0.5}, revision=None)
    assert report(tmp_path, "part-1", "part-2") == Exit.USAGE
    assert "part-2 differs from the first part in commit: unknown and unknown." in capsys.readouterr().err


@pytest.mark.parametrize("told", [{"revision": "d" * 40}, {"machine": OTHER_MACHINE}])
def test_across_joins_different_parts(told: dict[str, object], tmp_path: Path) -> None:
    part(tmp_path, 1, {"ref": 0.0, "a": 0.5})
    part(tmp_path, 2, {"ref": 0.0, "b": 0.8}, **told)  # type: ignore[arg-type]
    assert report(tmp_path, "part-1", "part-2", "--across") == Exit.OK
    (folder,) = tmp_path.glob("*-merged")
    assert "part-2 differs from the first part in" in store.read_info(folder).problems[0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("part-1", "part-2", "--deployments"), "at least one run is a part of a selection (run --part)"),
        (("part-1", "--across"), "--across works only with the parts of a selection"),
    ],
)
def test_flags_that_contradict_parts(
    arguments: tuple[str, ...], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number, name in ((1, "a"), (2, "b")):
        part(tmp_path, number, {"ref": 0.0, name: 0.5})
    assert report(tmp_path, *arguments) == Exit.USAGE
    assert message in capsys.readouterr().err
