"""While a load is on the observing thread is woken promptly where that is allowed, and nothing else is."""

import os
import subprocess
import sys
import threading

from harness.measure.observe import woken_promptly

ASK = "import os; print(os.sched_getscheduler(0))"


def test_only_the_observing_thread_has_priority_and_only_for_the_load() -> None:
    before = os.sched_getscheduler(0)
    others: list[int] = []
    with woken_promptly():
        during = os.sched_getscheduler(0) & ~os.SCHED_RESET_ON_FORK
        thread = threading.Thread(target=lambda: others.append(os.sched_getscheduler(0) & ~os.SCHED_RESET_ON_FORK))
        thread.start()
        thread.join()
        child = subprocess.run([sys.executable, "-c", ASK], capture_output=True, text=True, check=True)
    assert during in (os.SCHED_RR, before)  # the latter where it is not allowed
    assert others == [os.SCHED_OTHER]
    assert int(child.stdout) == os.SCHED_OTHER
    assert os.sched_getscheduler(0) & ~os.SCHED_RESET_ON_FORK == os.SCHED_OTHER
