"""All that was seen of a load of the order service stands in its record, and in the sample made of it."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.errors import LoadError
from harness.measure import order_load, rate_gates
from harness.measure.loadgen import Played
from harness.measure.order_load import take_load
from harness.measure.order_samples import as_sample
from harness.plan import profile as profiles
from harness.plan.orders import plan
from harness.records.models import Errors, Gate, Closed, Scenario, Outcome, RateSample, Sample, ServerUse
from harness.records.orders import ArrivalTimes, OperationTimes, OrderSample
from harness.tests.measure.observed import (
    BINNED,
    LATENCY,
    LEVEL,
    USE,
    bed,
    load,
    observation,
    observing,
    result,
    target,
)

WHOLE = LATENCY.model_copy(update={"mean": 0.002})


def operation(name: str = "create order", **changes: Any) -> OperationTimes:
    known: dict[str, Any] = {
        "use_case": "shop", "operation": name, "due": 50, "answered": 45, "errors": Errors(status=5),
        "latency": LATENCY, "service": LATENCY,
    }  # fmt: skip
    return OperationTimes(**{**known, **changes})


CASE = ArrivalTimes(use_case="shop", due=50, done=40, latency=WHOLE)
PLAYED = Played(
    due=50,
    done=40,
    failed=8,
    unfinished=2,
    requests_due=96,
    requests_answered=90,
    requests_unfinished=3,
    refused=0,
    operations=(operation(), operation("read order", due=40, latency=None, service=None)),
    use_cases=(CASE,),
    latency=WHOLE,
    lag_p99=0.0002,
    lag_max=0.003,
)
GATE = Gate(name="errors", outcome=Outcome.FAIL, value=1.0, threshold=0.0, word="errors")
SAMPLE = OrderSample(
    id="a/order/x8-r3.5",
    implementation="a",
    block=3,
    process=1,
    factor=8.0,
    started_at=1_700_000_123.0,
    command=("wrk", "-c", "64"),
    duration=4.0,
    due=50,
    done=40,
    failed=8,
    unfinished=2,
    operations=(
        operation(latency=BINNED, service=BINNED),
        operation("read order", due=40, latency=None, service=None),
    ),
    use_cases=(CASE.model_copy(update={"latency": BINNED.model_copy(update={"mean": 0.002})}),),
    bytes=150_000,
    lag_p99=0.0002,
    lag_max=0.003,
    cpu_per_arrival=0.04,
    database_cpu_seconds=0.6,
    server=USE,
    generator_cpu_seconds=0.75,
    generator_threads=2,
    steal_share=0.011,
    restarted=True,
    gates=(GATE,),
)
JUDGED = RateSample(
    id="http://app:81/order",
    implementation="",
    test_type="order",
    level=Closed(connections=64),
    block=0,
    process=0,
    purpose="share",
    asked_rate=24.0,
    started_at=1_700_000_123.0,
    duration=4.0,
    due=96,
    answered=90,
    achieved_rate=22.5,
    unfinished=3,
    errors=Errors(read=3, status=20),
    late=0,
    latency=WHOLE,
    lag_p99=0.0002,
    lag_max=0.003,
    server=USE,
    steal_share=0.011,
    restarted=True,
)


def test_a_load_of_arrivals_has_all_that_was_seen_of_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seen = observation(result=result(played=PLAYED))
    asked = observing(monkeypatch, order_load, seen)
    judged: list[object] = []

    def judge(*how: object) -> tuple[Gate, ...]:
        judged.append(how)
        return (GATE,)

    monkeypatch.setattr(rate_gates, "judge", judge)
    made: list[object] = []
    over = [False]

    def scenarios(plan: object, seed: int, folder: Path) -> Any:
        made.append((plan, seed, folder))
        return SimpleNamespace(name="scenario")

    (tmp_path / "answers.jsonl").touch()
    testbed, on = bed(), target("order", (LEVEL,), stop=lambda: over[0])
    taken = take_load(testbed, on, 8.0, seconds=4.0, seed=5, generator=scenarios, folder=tmp_path)
    assert taken.sample == SAMPLE
    assert taken.answers == tmp_path / "answers.jsonl"
    assert made == [(plan(8.0), 5, tmp_path)]
    assert judged == [(JUDGED, testbed.profile.orders.at_rates, testbed.profile.gates)]
    assert asked[0].testbed.generator == SimpleNamespace(name="scenario")
    arrivals = Closed(connections=64, queries=None, depth=1)
    accept = on.test_type.accept
    assert asked[0].load == load(arrivals, url="http://app:81/order", accept=accept)
    assert asked[0].response_bytes is None
    stop = asked[0].stop
    assert stop is not None
    assert not stop(None)  # type: ignore[arg-type]
    over[0] = True
    assert stop(None)  # type: ignore[arg-type]


def test_a_load_to_which_nobody_came_has_no_cost_an_arrival(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    nobody = Played(**{**vars(PLAYED), "due": 0, "operations": (), "use_cases": ()})
    observing(monkeypatch, order_load, observation(result=result(played=nobody)))
    (tmp_path / "answers.jsonl").touch()
    taken = take_load(
        bed(), target("order"), 0.5, seconds=4.0, seed=5, generator=lambda *_: bed().generator, folder=tmp_path
    )
    assert (taken.sample.cpu_per_arrival, taken.sample.id) == (None, "a/order/x0.5-r3.5")


def test_what_is_missing_of_a_load_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def take() -> None:
        take_load(bed(), target("order"), 1.0, seconds=4, seed=5, generator=lambda *_: bed().generator, folder=tmp_path)

    observing(monkeypatch, order_load, observation(result=result(played=PLAYED)))
    with pytest.raises(LoadError) as missing:
        take()
    assert str(missing.value) == f"the generator wrote no answers into {tmp_path / 'answers.jsonl'}"
    observing(monkeypatch, order_load, observation())
    with pytest.raises(LoadError, match=r"^the generator played no scenario on http://app:81/order$"):
        take()


def test_a_load_of_orders_is_a_sample_by_arrivals_and_by_the_time_to_create_an_order() -> None:
    level = Scenario(connections=64, factor=8.0)
    assert as_sample(SAMPLE, level, target("order")) == Sample(
        id="a/order/x8-r3.5/x8",
        implementation="a",
        test_type="order",
        level=level,
        block=3,
        process=1,
        started_at=1_700_000_123.0,
        command=("wrk", "-c", "64"),
        duration=4.0,
        asked_duration=4.0,
        requests=40,
        bytes=150_000,
        errors=Errors(status=10),
        throughput=10.0,
        cpu_per_request=0.04,
        latency=as_sample(SAMPLE, level, target("order")).latency,
        server=USE,
        generator_cpu_seconds=0.75,
        generator_threads=2,
        database_cpu_seconds=0.6,
        gates=(GATE,),
        steal_share=0.011,
        restarted=True,
    )


def test_the_latency_of_such_a_sample_is_of_all_orders_created_and_of_nothing_else() -> None:
    slow = LATENCY.model_copy(update={"histogram": ((0.2, 1000),), "mean": 0.2})
    two = (operation(latency=BINNED), operation(latency=slow, use_case="call centre"), operation("pay", latency=WHOLE))
    level = Scenario(connections=64, factor=8.0)
    found = as_sample(SAMPLE.model_copy(update={"operations": two}), level, target("order")).latency
    assert found is not None
    assert found.histogram == ((0.0, 10), (0.00123, 990), (0.2, 1000))
    assert found.mean == pytest.approx((BINNED.mean + 0.2) / 2)
    none = SAMPLE.model_copy(update={"operations": (operation("pay"), operation(latency=None))})
    assert as_sample(none, level, target("order")).latency is None


def test_a_load_whose_server_was_not_seen_used_nothing() -> None:
    unseen = SAMPLE.model_copy(update={"server": None})
    found = as_sample(unseen, Scenario(connections=64, factor=8.0), target("order")).server
    nothing = ServerUse(cpu_seconds=0.0, rss_peak=None, rss_mean=None, wait_share=None, throttled_seconds=None)
    assert found == nothing


def test_a_profile_s_own_rates_judge_its_orders(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    smoke = profiles.load("smoke")
    strict = smoke.orders.at_rates.model_copy(update={"unfinished_share": 0.5})
    orders = smoke.orders.model_copy(update={"at_rates": strict})
    observing(monkeypatch, order_load, observation(result=result(played=PLAYED), restarted=False))
    (tmp_path / "answers.jsonl").touch()
    testbed = bed(smoke.model_copy(update={"orders": orders}))
    taken = take_load(
        testbed, target("order"), 8.0, seconds=4.0, seed=5, generator=lambda *_: bed().generator, folder=tmp_path
    )
    (unfinished,) = [gate for gate in taken.sample.gates if gate.name == "unfinished"]
    assert (unfinished.outcome, unfinished.value, unfinished.threshold) == (Outcome.PASS, 3 / 96, 0.5)
