"""Several runs as one: blocks, processes and sets are kept apart, units count once."""

from pathlib import Path

import pytest

from harness.benchmarks.simulation import run_info, sample
from harness.cli.merge import write as write_merged
from harness.errors import UsageError
from harness.plan.profile import Replication
from harness.records import merging, orders, rates
from harness.records.models import CheckResult, GoalCapacity, Scenario, Outcome, ReplicateRecord, RunInfo, Verdict
from harness.records.store import RunStore
from harness.stats.whole import rank_whole
from harness.tests.doubles import order_data

ONE = Replication(minimum=1, maximum=1)


def write(
    folder: Path, names: tuple[str, ...], machines: str, *, unit: str = "", seconds: float = 15.0, fails: str = ""
) -> Path:
    store = RunStore(folder, started_at=0.0)
    settings = {"profile": {"duration_seconds": seconds, "replication": ONE.model_dump()}}
    info = run_info(names, ONE, reference=names[0])
    more = {"set_name": machines, "unit": unit, "settings": settings, "completed_at": 1.0}
    store.write_info(info.model_copy(update=more))
    for name in names:
        store.add_sample(sample(name, 0, 1000.0))
        store.add_replicate(
            ReplicateRecord(implementation=name, block=0, started_at=0.0, first_answer=0.1, status="ok")
        )
        outcome = Outcome.FAIL if name == fails else Outcome.PASS
        store.add_verdict(
            Verdict(
                implementation=name, test_type="json", replicate=0, thorough=True, outcome=outcome, duration=1.0,
                results=(CheckResult(check="status-200", rule="common.1", outcome=outcome),),
            )
        )  # fmt: skip
    return folder


def test_blocks_and_processes_are_numbered_anew_and_belong_to_their_sets(tmp_path: Path) -> None:
    folders = [
        write(tmp_path / "1", ("ref", "a"), "lab-a"),
        write(tmp_path / "2", ("ref", "b"), "lab-b"),
        write(tmp_path / "3", ("ref", "a"), "lab-a"),
    ]
    found = merging.merge(folders, "all", started_at=0.0)
    assert {(s.implementation, s.block, s.process) for s in found.samples} == {
        ("ref", 0, 0), ("a", 0, 0), ("ref", 1, 1), ("b", 1, 0), ("ref", 2, 2), ("a", 2, 1),
    }  # fmt: skip
    assert [(each.name, each.blocks, each.runs) for each in found.info.sets] == [
        ("lab-a", (0, 2), ("1", "3")), ("lab-b", (1,), ("2",)),
    ]  # fmt: skip
    assert [each.name for each in found.info.implementations] == ["ref", "a", "b"]
    assert not found.problems


def test_a_unit_that_two_runs_measured_counts_once(tmp_path: Path) -> None:
    folders = [
        write(tmp_path / "1", ("ref", "a"), "lab-a", unit="q/0001"),
        write(tmp_path / "2", ("ref", "a"), "lab-b", unit="q/0001"),
    ]
    found = merging.merge(folders, "all", started_at=0.0)
    assert len(found.samples) == 2
    assert "unit q/0001 is already there" in found.problems[0]


def test_an_implementation_that_failed_verification_anywhere_has_failed(tmp_path: Path) -> None:
    folders = [write(tmp_path / "1", ("ref", "a"), "lab-a", fails="a"), write(tmp_path / "2", ("ref", "a"), "lab-b")]
    found = merging.merge(folders, "all", started_at=0.0)
    assert {(v.implementation, v.outcome) for v in found.verdicts} == {("ref", Outcome.PASS), ("a", Outcome.FAIL)}


def test_runs_of_other_durations_or_without_a_shared_reference_are_refused(tmp_path: Path) -> None:
    first = write(tmp_path / "1", ("ref", "a"), "lab-a")
    with pytest.raises(UsageError, match="duration_seconds"):
        merging.merge([first, write(tmp_path / "2", ("ref", "a"), "lab-b", seconds=5.0)], "all", started_at=0.0)
    with pytest.raises(UsageError, match="do not share a reference"):
        merging.merge([first, write(tmp_path / "3", ("b", "c"), "lab-b")], "all", started_at=0.0)


def test_a_queue_gives_the_runs_of_the_units_that_are_done(tmp_path: Path) -> None:
    for unit, done in (("0001", True), ("0002", False)):
        folder = tmp_path / "units" / unit
        write(folder / "r", ("ref", "a"), "lab-a")
        if done:
            (folder / "done").write_text("r\n")
    assert list(merging.runs_below(tmp_path)) == [tmp_path / "units" / "0001" / "r"]


RULES = {"factors": [8], "seconds": 8}
FACTOR = Scenario(connections=64, factor=8.0)


def order_run(folder: Path, machines: str, seconds: dict[str, float], rules: dict[str, object] | None = None) -> Path:
    """Two processes of each, whose median of "create order" is told; up to 32 milliseconds ÷ that factor."""
    store = RunStore(folder, started_at=0.0)
    settings = {"profile": {"duration_seconds": 8.0, "replication": ONE.model_dump(), "orders": rules or RULES}}
    info: RunInfo = run_info(tuple(seconds), ONE, reference="ref", levels={"order": (FACTOR,)})
    implementations = tuple(one.model_copy(update={"test_types": ("order",)}) for one in info.implementations)
    more = {"set_name": machines, "settings": settings, "completed_at": 1.0, "implementations": implementations}
    store.write_info(info.model_copy(update=more))
    for name, median in seconds.items():
        for block in (0, 1):
            load = order_data.load(name, block, 8.0, median * (1 + block / 100))
            first = load.operations[0]
            assert first.latency is not None
            told = first.model_copy(
                update={"latency": first.latency.model_copy(update={"histogram": ((median, 998),)})}
            )
            store.add_line(orders.ORDERS, load.model_copy(update={"operations": (told, *load.operations[1:])}))
            store.add_sample(order_data.sample(load))
            store.add_line(
                orders.CAPACITIES,
                orders.OrderCapacity(
                    implementation=name, block=block, goal=order_data.GOAL, factor=0.032 / median, above=0.04 / median,
                    decided=True, loads=4,
                ),
            )  # fmt: skip
    return folder


def test_loads_of_the_order_service_and_their_capacities_go_with_their_processes(tmp_path: Path) -> None:
    folders = [
        order_run(tmp_path / "1", "lab", {"ref": 0.002, "a": 0.004}),
        order_run(tmp_path / "2", "lab", {"ref": 0.002, "b": 0.008}),
    ]
    merged = merging.merge(folders, "all", started_at=0.0)
    write_merged(merged, tmp_path / "all")
    found = orders.read(tmp_path / "all")
    assert found.problems == ()
    samples = {(s.implementation, s.block, s.process) for s in merged.samples}
    assert {(s.implementation, s.block, s.process) for s in found.samples} == samples
    assert {(s.implementation, s.block, s.process) for s in found.capacities} == samples
    assert samples == {(name, block, block) for name, block in (("ref", 0), ("ref", 1), ("ref", 2), ("ref", 3), ("a", 0), ("a", 1))} | {
        ("b", 2, 0), ("b", 3, 1),
    }  # fmt: skip
    assert {each.latency.histogram for load in found.samples for each in load.operations if each.latency} == {()}


def test_across_sets_the_order_service_is_ranked_by_ratios_to_the_reference(tmp_path: Path) -> None:
    folders = [
        order_run(tmp_path / "1", "fast", {"ref": 0.002, "a": 0.004, "b": 0.006}),
        order_run(tmp_path / "2", "slow", {"ref": 0.020, "a": 0.040}),
    ]
    merged = merging.merge(folders, "all", started_at=0.0)
    write_merged(merged, tmp_path / "all")
    ranking, _ = rank_whole(tmp_path / "all", merged.info, merged.samples, merged.replicates, merged.verdicts)
    assert ranking.orders is not None
    (table,) = ranking.orders.tables
    times = {row.implementation: row.response for row in table.rows}
    ratios = {
        name: standing.to_reference.value for name, standing in times.items() if standing and standing.to_reference
    }
    assert ratios == pytest.approx({"a": 2.0, "b": 3.0, "ref": 1.0}, rel=1e-3)
    factors = {row.implementation: row.capacity for row in ranking.orders.capacities}
    ratios = {
        name: standing.to_reference.value for name, standing in factors.items() if standing and standing.to_reference
    }
    assert ratios == pytest.approx({"a": 1 / 2, "b": 1 / 3, "ref": 1.0}, rel=1e-3)
    own = {row.implementation: row.percentiles["90"] for row in table.rows}
    assert own["a"].replicates == 2  # sets, not processes


def test_loads_by_other_factors_are_not_merged_and_runs_without_them_have_nothing_to_differ_by(tmp_path: Path) -> None:
    first = order_run(tmp_path / "1", "lab", {"ref": 0.002})
    other = order_run(tmp_path / "2", "lab", {"ref": 0.002}, {"factors": [8], "seconds": 4})
    with pytest.raises(UsageError, match=r"\[orders\] of its profile differs"):
        merging.merge([first, other], "all", started_at=0.0)
    (other / orders.ORDERS).unlink()
    (other / orders.CAPACITIES).unlink()
    assert len(merging.merge([first, other], "all", started_at=0.0).samples) == 4


def test_loads_at_given_rates_are_carried_as_well(tmp_path: Path) -> None:
    folder = write(tmp_path / "1", ("ref", "a"), "lab")
    capacity = GoalCapacity(
        implementation="a", test_type="json", block=0, process=0, goal=order_data.GOAL, rate=500.0, above=550.0,
        decided=True, confidence=0.95, loads=4, contradictions=0, closed_loop=1000.0,
    )  # fmt: skip
    RunStore(folder, started_at=0.0).add_line(rates.CAPACITIES, capacity)
    merged = merging.merge([write(tmp_path / "0", ("ref", "a"), "lab"), folder], "all", started_at=0.0)
    (carried,) = merged.further[rates.CAPACITIES]
    assert (carried.implementation, carried.block, carried.process) == ("a", 1, 1)
