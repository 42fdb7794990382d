"""Who is alive together, and what fits into the time."""

from harness.plan.plan import PlannedReplicate
from harness.plan.profile import Rounds
from harness.plan.rounds import Shape, groups, headline, shape, turnover
from harness.records.models import Closed

JSON = (Closed(connections=16), Closed(connections=64), Closed(connections=256))
QUERY = tuple(Closed(connections=64, queries=q) for q in (1, 5, 20))


def candidates(names: str) -> list[PlannedReplicate]:
    return [PlannedReplicate(implementation=name, test_types={"json": JSON}, jit=name.isupper()) for name in names]


def named(found: list[list[PlannedReplicate]]) -> list[set[str]]:
    return [{planned.implementation for planned in group} for group in found]


def test_the_headline_level_is_the_middle_one_or_the_most_queries() -> None:
    assert headline(JSON) == JSON[1]
    assert headline(JSON[:2]) == JSON[0]
    assert headline(QUERY) == QUERY[2]


def test_all_that_fit_are_one_group() -> None:
    sizes = dict.fromkeys("abcd", 100e6)
    assert named(groups(candidates("abcd"), sizes, 400e6, 1, side_by_side=True)) == [set("abcd")]


def test_what_does_not_fit_is_the_next_group_and_a_giant_a_group_by_itself() -> None:
    sizes = {**dict.fromkeys("abc", 100e6), "d": 900e6}
    found = groups(candidates("abcd"), sizes, 250e6, 3, side_by_side=True)
    assert all(len(group) == 1 or sum(sizes[p.implementation] for p in group) <= 250e6 for group in found)
    assert {"d"} in named(found)
    assert sorted(p.implementation for group in found for p in group) == list("abcd")


def test_servers_on_jit_runtimes_are_thought_larger_until_they_are_measured() -> None:
    assert len(groups(candidates("ABCD"), {}, 2100e6, 1, side_by_side=True)) == 2
    assert len(groups(candidates("abcd"), {}, 2100e6, 1, side_by_side=True)) == 1


def test_the_groups_depend_on_the_seed_alone() -> None:
    one = named(groups(candidates("abcdef"), {}, 600e6, 5, side_by_side=True))
    assert one == named(groups(candidates("fedcba"), {}, 600e6, 5, side_by_side=True))
    assert one != named(groups(candidates("abcdef"), {}, 600e6, 6, side_by_side=True))


def test_without_room_beside_each_other_everyone_is_alone() -> None:
    assert [len(g) for g in groups(candidates("abc"), {}, 1e12, 1, side_by_side=False)] == [1, 1, 1]


def fit(seconds: float, processes: int = 2) -> Shape:
    """Four servers of 25 s setup each, rounds of 50 s, sweeps of 40 s, a share of a half to be measured."""
    return shape(
        Rounds(processes=processes),
        total_seconds=seconds + 100,
        seconds=seconds,
        setup_seconds=dict.fromkeys("abcd", 25.0),
        headline_seconds=50,
        other_seconds=40,
        seed=1,
    )


def test_as_many_processes_are_replaced_as_leave_half_of_the_time_to_windows() -> None:
    assert [len(names) for names in fit(800).replaced] == [4]
    assert [len(names) for names in fit(800, processes=3).replaced] == [4, 4]
    assert [len(names) for names in fit(420, processes=3).replaced] == [4, 2]
    assert fit(420, processes=3).rounds == (420 - 6 * 25 - 40) // 50


def test_a_few_second_processes_are_not_worth_their_time() -> None:
    assert fit(240) == Shape(rounds=4)


def test_those_that_are_up_soonest_are_replaced_first() -> None:
    found = shape(
        Rounds(processes=3),
        total_seconds=500,
        seconds=520,
        setup_seconds={"jvm": 60.0, "node": 20.0, "go": 10.0, "es4x": 150.0},
        headline_seconds=50,
        other_seconds=40,
        seed=1,
    )
    assert found.replaced == (("go", "node", "jvm", "es4x"), ("go", "node"))


def test_processes_are_replaced_a_few_before_each_round_and_each_once() -> None:
    due = turnover(Shape(rounds=6, replaced=(tuple("abcd"),)))
    assert due == {3: ["a", "b"], 4: ["c", "d"]}
    assert turnover(Shape(rounds=6)) == {}
