"""One replicate to its end: every test type on a fresh process, and again where PostgreSQL ended in it."""

from harness.errors import ENDS_THE_RUN
from harness.plan.plan import PlannedReplicate
from harness.plan.testtypes.registry import TEST_TYPES
from harness.records.store import set_aside
from harness.run import orders, vanishing
from harness.run.replicate import DATABASE_DEATHS, RECORDED, Replicate
from harness.run.running import Run


def run(run: Run, planned: PlannedReplicate) -> None:
    """What fails is in the replicate's record; a database that ends costs it, and it is begun again."""
    for again in reversed(range(DATABASE_DEATHS + 1)):
        _run(run, planned)
        how = run.testbed.database.obituary()
        if how is None or not again:
            return
        run.progress.problem(f"{how}; {planned.implementation} is measured again")
        set_aside(run.store.folder, {(planned.implementation, planned.process)})


def _run(run: Run, planned: PlannedReplicate) -> None:
    replicate = Replicate(run, planned)
    try:
        with replicate:
            for name in planned.test_types:
                if TEST_TYPES[name].open_loop:
                    orders.measure(run, replicate, name)
                else:
                    replicate.measure(name)
    except ENDS_THE_RUN:
        raise
    except RECORDED:
        pass  # it did not start; its record says why
    if replicate.reasons:
        vanishing.look(run)
