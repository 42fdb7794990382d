"""``python -m harness.tests.mutation``: plants a random sample of defects in the core; how many does a test notice?"""

import argparse
import random
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from math import ceil
from pathlib import Path

from scipy.stats import binomtest

NOTICED = {"killed", "timeout", "segfault"}
JOBS = 2


def drawn(mutants: Sequence[str], size: int, seed: int) -> tuple[str, ...]:
    """A sample in which each module has its share of the defects, in a random order: any beginning of it is one too."""
    by_module: defaultdict[str, list[str]] = defaultdict(list)
    for name in sorted(mutants):
        by_module[module(name)].append(name)
    generator, keyed = random.Random(seed), list[tuple[float, str]]()
    for names in by_module.values():
        generator.shuffle(names)
        # Systematic sampling: the k-th of n stands at a random place of the k-th n-th of the whole order.
        keyed += [((place + generator.random()) / len(names), name) for place, name in enumerate(names)]
    return tuple(name for _, name in sorted(keyed)[:size])


def module(mutant: str) -> str:
    """The module that a defect is planted in: ``harness.stats.fit.x_f__mutmut_1`` is in ``harness.stats.fit``."""
    return mutant.rpartition(".")[0]


def table(found: Mapping[str, str]) -> str:
    """The score of each module and of all with Wilson's interval, and the names of the defects not noticed."""
    rows: defaultdict[str, Counter[bool]] = defaultdict(Counter)
    for name, status in found.items():
        rows[module(name)][status in NOTICED] += 1
    lines = [f"{name}: {count[True]} of {count.total()} noticed" for name, count in sorted(rows.items())]
    noticed, total = sum(count[True] for count in rows.values()), len(found)
    if total:
        interval = binomtest(noticed, total).proportion_ci(method="wilson")
        share = f"{noticed / total:.1%} (95 % interval {interval.low:.1%} to {interval.high:.1%})"
        timeouts = sum(status == "timeout" for status in found.values())
        lines.append(f"all: {noticed} of {total} noticed, {timeouts} by their time: {share}")
    lines += [f"not noticed ({status}): {name}" for name, status in sorted(found.items()) if status not in NOTICED]
    return "\n".join(lines)


def planted(size: int, seed: int, until: float) -> Mapping[str, str]:
    """Status of each defect of the sample that was planted in time, by its name."""
    # Once imported it sets how processes start.
    from mutmut import __main__ as mutmut
    from mutmut.configuration import config
    from mutmut.mutation.trampoline import set_mutant_under_test
    from mutmut.runners.harness import PytestRunner
    from mutmut.state import state
    from mutmut.stats import status_by_exit_code
    from mutmut.utils import file_utils
    from mutmut.utils.format_utils import mangled_name_from_mutant_name
    from mutmut.workers.isolation import ForkRunner

    set_mutant_under_test("mutant_generation")
    Path("mutants").mkdir(exist_ok=True)
    file_utils.copy_src_dir()
    file_utils.copy_also_copy_files()
    file_utils.setup_source_paths()
    mutmut.store_lines_covered_by_tests()
    mutmut.create_mutants(JOBS)
    for name in [name for name in sys.modules if name.partition(".")[0] == "harness"]:
        del sys.modules[name]  # as imported from here: the tests import what is in mutants/
    runner = ForkRunner(max_workers=JOBS, test_runner=PytestRunner())
    mutmut.collect_or_load_stats(runner, apply_config_invalidation=True)  # runs all tests once: they must pass
    known, _ = mutmut.collect_source_file_mutation_data(mutant_names=())
    set_mutant_under_test("")
    mutmut.run_forced_fail_test(runner)
    found: dict[str, str] = {}

    def take_one() -> None:
        result = runner.wait_for_result()
        found[result.mutant_name] = status_by_exit_code[result.exit_code]
        print(f"{len(found)} {found[result.mutant_name]} {result.mutant_name}", flush=True)

    runner.startup()
    try:
        for name in drawn([name for _, name, _ in known], size, seed):
            tests = state().tests_by_mangled_function_name.get(mangled_name_from_mutant_name(name), set())
            if not tests:
                found[name] = "no tests"
                continue
            while not runner.has_capacity():
                take_one()
            if time.monotonic() > until:
                break
            seconds = mutmut.estimated_worst_case_time(name)
            limit = ceil((seconds + config().timeout_constant) * config().timeout_multiplier * 2)
            runner.submit(name, list(tests), limit, seconds)
        runner.signal_work_complete()
        while runner.pending_count() > 0:
            take_one()
    finally:
        runner.stop_all_workers()
        runner.shutdown()
    return found


def main() -> None:
    """Plant the sample in ``mutants/`` of this folder, as ``[tool.mutmut]`` of pyproject.toml says."""
    p = argparse.ArgumentParser(prog="python -m harness.tests.mutation", description=__doc__)
    p.add_argument("--sample", type=int, default=300, help="how many of all defects (default: 300)")
    p.add_argument("--seed", type=int, default=1, help="which of them, and their order (default: 1)")
    p.add_argument("--minutes", type=float, default=60.0, help="plant no more of them after so long (default: 60)")
    options = p.parse_args()
    print(table(planted(options.sample, options.seed, time.monotonic() + 60 * options.minutes)))


if __name__ == "__main__":
    main()
