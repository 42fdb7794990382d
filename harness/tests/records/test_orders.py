"""The files of the order service's loads: written a line at a time, and read as far as they can be."""

from pathlib import Path

from harness.records import orders
from harness.records.models import Errors, Gate, LatencyGoal, Outcome
from harness.records.orders import OperationTimes, OrderCapacity, OrderSample
from harness.records.store import RunStore


def operation(name: str, answered: int, errors: Errors) -> OperationTimes:
    due = answered + errors.total
    return OperationTimes(use_case="shop", operation=name, due=due, answered=answered, errors=errors, latency=None)


SAMPLE = OrderSample(
    id="a/order/x8-r0.1",
    implementation="a",
    block=0,
    process=0,
    factor=8.0,
    started_at=0.0,
    duration=10.0,
    due=593,
    done=590,
    failed=2,
    unfinished=1,
    operations=(
        operation("create order", 592, Errors(status=1)),
        operation("read order", 590, Errors(timeout=1)),
    ),
)
CAPACITY = OrderCapacity(
    implementation="a", block=1, process=1, goal=LatencyGoal(), factor=8.0, above=16.0, decided=False, loads=4
)


def test_a_run_without_an_order_service_has_no_loads_of_it_and_no_problem(tmp_path: Path) -> None:
    assert orders.read(tmp_path) == orders.OrderRecords()


def test_what_was_written_is_read_again_and_a_half_line_is_a_problem(tmp_path: Path) -> None:
    folder = RunStore(tmp_path, started_at=0.0)
    folder.add_line(orders.ORDERS, SAMPLE)
    folder.add_line(orders.CAPACITIES, CAPACITY)
    with (tmp_path / orders.ORDERS).open("a") as file:
        file.write('{"implementation": "b"')
    found = orders.read(tmp_path)
    assert (found.samples, found.capacities) == ((SAMPLE,), (CAPACITY,))
    assert len(found.problems) == 1
    assert "orders.jsonl:2: cannot be read" in found.problems[0]


def test_errors_and_answers_are_those_of_all_operations() -> None:
    assert SAMPLE.errors == Errors(status=1, timeout=1)
    assert SAMPLE.answered == 1182


def test_a_load_with_a_failed_gate_is_not_valid_and_a_warning_is_no_failure() -> None:
    def judged(outcome: Outcome) -> OrderSample:
        gate = Gate(name="steal", outcome=outcome, value=0.1, threshold=0.05)
        return SAMPLE.model_copy(update={"gates": (gate,)})

    assert [judged(outcome).valid for outcome in Outcome] == [True, True, False]
