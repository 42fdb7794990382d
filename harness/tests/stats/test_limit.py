"""The floor: left out of ranks, the others told in multiples of it."""

import pytest

from harness.records.models import Closed, ImplementationInfo, RunInfo
from harness.stats.limit import limits, reason, word
from harness.stats.ranking import rank
from harness.stats.values import CellValues
from harness.tests.stats import records

LEVEL = Closed(connections=64)


def info(name: str, *tags: str) -> ImplementationInfo:
    return ImplementationInfo(
        name=name, framework=name, language="C", folder="x", display_name=name, tags=tags, test_types=("json",)
    )


def run(*implementations: ImplementationInfo, reference: str | None = None) -> RunInfo:
    return records.run().model_copy(update={"implementations": implementations, "reference": reference})


def cell(cpu: float) -> CellValues:
    return CellValues(
        throughput={1: 1000.0},
        cpu_per_request={1: cpu},
        rss_peak=None,
        errors=0,
        words=(),
        failed_words=(),
        samples=1,
        dropped=0,
        blocks=(1,),
        generator_bound=0,
    )


def test_a_limit_is_left_out_beside_others_and_ranked_where_it_is_alone_or_the_reference() -> None:
    floor, other = info("floor", "Limit"), info("other")
    assert limits(run(floor, other)) == ("floor",)
    assert limits(run(floor)) == ()
    assert limits(run(floor, other, reference="floor")) == ()


def test_others_are_told_in_multiples_of_its_cpu_per_request_at_the_same_level() -> None:
    cells = {("floor", "json"): {LEVEL: cell(4e-6)}, ("other", "json"): {LEVEL: cell(10e-6)}}
    assert word("other", "json", LEVEL, ("floor",), cells) == "CPU 2.5× the floor"
    assert word("floor", "json", LEVEL, ("floor",), cells) is None
    assert word("other", "json", Closed(connections=8), ("floor",), cells) is None


@pytest.mark.parametrize(("known", "words"), [(cell(4e-6), "(1,000 req/s, 4 µs CPU/req)"), (None, "not ranked")])
def test_its_own_row_has_its_figures_in_words(known: CellValues | None, words: str) -> None:
    assert reason(known).endswith(words)


def test_in_a_table_it_has_no_rank_and_takes_none_from_others() -> None:
    names = ("floor", "fast", "slow")
    samples = [s for name, rate in zip(names, (9000, 3000, 1000), strict=True) for s in records.five(name, rate)]
    bare = records.run(*names, reference="fast")
    tagged = tuple(i.model_copy(update={"tags": ("limit",)}) if i.name == "floor" else i for i in bare.implementations)
    found = rank(bare.model_copy(update={"implementations": tagged}), samples, [], [])
    rows = {row.implementation: row for row in found.test_types["json"].headline.rows}
    assert (rows["floor"].ranked, rows["floor"].reason.startswith("the floor")) == (False, True)
    fast = rows["fast"].throughput
    assert fast is not None
    assert (fast.rank.low, rows["fast"].words[0].endswith("× the floor")) == (1, True)
    assert [score.implementation for score in found.overall] == ["fast", "slow"]
