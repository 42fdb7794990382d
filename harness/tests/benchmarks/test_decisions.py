"""What runs decided: pairs, wrong orders over several runs, copies that were called different."""

import pytest

from harness.benchmarks.decisions import Pair, clear, pairs, wrong
from harness.stats.ranking import rank
from harness.tests import records


def pair(run: str, a: float, b: float, *, decided: bool, names: tuple[str, str] = ("a", "b")) -> Pair:
    """Of throughput in json."""
    return Pair(run=run, metric="throughput", test_type="json", names=names, medians=(a, b), decided=decided)


def test_the_pairs_of_a_run_are_those_of_its_headline_tables() -> None:
    found = list(pairs("r", rank(records.info(), records.samples(), [], [])))
    throughput = next(each for each in found if (each.metric, each.test_type) == ("throughput", "json"))
    assert throughput.names == ("fast", "slow")
    assert throughput.factor == pytest.approx(2.0)
    assert {each.metric for each in found} == {"throughput", "cpu_per_request"}


def test_a_run_that_decided_against_what_all_say_together_is_wrong() -> None:
    others = [pair("1", 1.0, 2.0, decided=True), pair("2", 1.0, 2.1, decided=False)]
    against = pair("3", 1.2, 1.0, decided=True)
    assert wrong([*others, against]) == (against,)


def test_a_median_on_the_other_side_that_decided_nothing_is_no_error() -> None:
    assert wrong([pair("1", 1.0, 2.0, decided=True), pair("2", 1.1, 1.0, decided=False)]) == ()


def test_to_decide_between_a_program_and_its_copy_is_wrong_whoever_leads() -> None:
    told = pair("1", 1.0, 2.0, decided=True, names=("copy", "it"))
    tied = pair("2", 1.0, 1.1, decided=False, names=("copy", "it"))
    assert wrong([told, tied], frozenset({frozenset({"it", "copy"})})) == (told,)


def test_only_pairs_that_differ_much_ought_to_be_decided() -> None:
    found = [
        pair("1", 1.0, 1.5, decided=True),
        pair("1", 3.0, 1.0, decided=False),
        pair("1", 1.0, 1.49, decided=False),
    ]
    assert clear(found, "throughput") == (1, 2)
    assert clear(found, "cpu_per_request") == (0, 0)
