"""The order service on one process: loads at the planned factors in random order, then the search for its capacity.

Each load begins on empty tables of orders, so that they grow alike for all, and ends with every answer held against
the rows that the database has.
"""

import random
from collections.abc import Iterator

from harness.errors import LoadError
from harness.host import ownership
from harness.measure.factor_search import FactorSearch
from harness.measure.order_load import Taken, take_load
from harness.measure.order_samples import as_sample
from harness.measure.testbed import Target
from harness.plan.profile import OrderRules
from harness.records import orders
from harness.records.models import CheckResult, Level, Outcome
from harness.run.replicate import Replicate
from harness.run.running import Run


def measure(run: Run, replicate: Replicate, name: str) -> None:
    """Verify, warm and load the test type on one process; what fails is in the replicate's record."""
    target = replicate.target(name)
    if target is None:
        replicate.server.require_alive()  # one that died in verification is told so
        return
    planned = replicate.planned
    drawn = random.Random(f"{run.seed}/{planned.block}/{planned.implementation}/{name}")
    try:
        _Loads(run, replicate, target, drawn).run()
        replicate.verify_after_load(target)
    except LoadError as error:
        replicate.fail(f"{name}: {error}")
    replicate.server.require_alive()


class _Loads:
    """All loads on one process."""

    def __init__(self, run: Run, replicate: Replicate, target: Target, drawn: random.Random) -> None:
        self._run, self._replicate, self._target, self._drawn = run, replicate, target, drawn
        self._rules: OrderRules = run.testbed.profile.orders
        self._passed: tuple[CheckResult, ...] = ()  # of the latest load
        self._generator = run.rate_tools.scenarios(run.testbed.runtime.name, self._rules.drain_seconds)

    def run(self) -> None:
        """Warm up, the planned factors, the search; raises LoadError."""
        self._warm()
        search = FactorSearch(self._rules)
        for level, is_planned in self._levels(search):
            taken = self._load(level, self._rules.seconds, "measure")
            search.add(taken.sample)
            self._run.store.add_line(orders.ORDERS, taken.sample)
            if is_planned:
                sample = as_sample(taken.sample, level, self._target)
                self._replicate.keep(sample)
        self._replicate.judge_again(self._target, self._passed, "under load")
        if self._rules.search_loads:
            self._run.store.add_line(orders.CAPACITIES, search.capacity(self._target))

    def _warm(self) -> None:
        """Loads that are not recorded, but whose answers count like any other's."""
        left = self._rules.warm_up_seconds
        level = self._target.levels[0].model_copy(update={"factor": self._rules.warm_up_factor})
        while left > 0:
            self._load(level, max(1.0, min(left, self._rules.seconds)), "warm-up")
            left -= self._rules.seconds

    def _levels(self, search: FactorSearch) -> Iterator[tuple[Level, bool]]:
        planned = list(self._target.levels)
        self._drawn.shuffle(planned)
        yield from ((level, True) for level in planned)
        for _ in range(self._rules.search_loads):
            factor = search.next_factor()
            if factor is None:
                return
            yield planned[0].model_copy(update={"factor": factor}), False

    def _load(self, level: Level, seconds: float, stage: str) -> Taken:
        """One load on empty tables, and the rows that its answers must have left."""
        bed, target = self._run.testbed, self._target
        assert level.factor is not None  # noqa: S101 - of a test type whose load is arrivals
        bed.verifier.empty_orders(target.database.address)
        self._run.progress.cell(target.test_type.name, stage, level)
        with ownership.scratch("tfb-orders-") as folder:
            taken = take_load(
                bed,
                target,
                level.factor,
                seconds=seconds,
                seed=self._drawn.randrange(1 << 31),
                generator=self._generator,
                folder=folder,
            )
            results = bed.verifier.orders_answered(taken.answers, target.database.address)
        self._passed = tuple(result for result in results if result.outcome is Outcome.PASS)
        objections = tuple(result for result in results if result.outcome is not Outcome.PASS)
        self._replicate.judge_again(target, objections, f"under load, {level.label}")
        return taken
