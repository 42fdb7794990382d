"""Only what the claims need is measured, in pieces that fit the time, and no longer than until they are settled."""

from harness.claims import planning
from harness.claims.claim import Claim
from harness.claims.planning import UntilSettled
from harness.plan import profile as profiles
from harness.records.models import Closed
from harness.tests.claims.records import RULES, claim, claim_of, run_of, side

PROFILE = profiles.load("claims")
EXPECTED = (("a", "json"), ("b", "json"), ("c", "json"))


def named(name: str, of: str, to: str) -> Claim:
    return claim(of=side(of), to=side(to), ratio=2.5).model_copy(update={"name": name})


def test_each_cell_is_planned_once_at_its_own_levels_the_heaviest_first() -> None:
    two = claim_of(
        {"name": "x", "metric": "throughput", "of": side("a", 100), "to": side("b"), "ratio": 2.0},
        {"name": "y", "metric": "memory", "of": side("a"), "to": side("b"), "ratio": 2.0},
    )
    both = (Closed(connections=100), Closed(connections=64))
    assert planning.cells_of([two, two]) == {"a": {"json": both}, "b": {"json": both[1:]}}


def test_claims_that_share_servers_are_measured_together_as_far_as_the_time_goes() -> None:
    claims = [named("one", "a", "b"), named("two", "c", "d"), named("three", "a", "b")]
    (first,) = planning.pieces(claims[:1], PROFILE, lambda _: False, 1.0)
    cost = first.seconds
    tight = planning.pieces(claims, PROFILE, lambda _: False, cost)
    assert [[each.name for each in piece.claims] for piece in tight] == [["one", "three"], ["two"]]
    roomy = planning.pieces(claims, PROFILE, lambda _: False, 2 * cost)
    assert len(roomy) == 1


def test_a_claim_that_takes_longer_than_the_limit_is_a_piece_of_its_own() -> None:
    assert len(planning.pieces([named("one", "a", "b"), named("two", "a", "b")], PROFILE, lambda _: True, 1.0)) == 2


def test_ratios_of_load_are_measured_in_turns_and_figures_of_a_process_in_blocks() -> None:
    memory = claim_of({"name": "y", "metric": "memory", "of": side("a"), "to": side("b"), "ratio": 2.0})
    first = claim_of({"name": "z", "metric": "first-answer", "of": side("a"), "to": side("b"), "ratio": 2.0})
    found = planning.pieces([named("one", "a", "b"), memory, first], PROFILE, lambda _: False, 3600.0)
    assert [(piece.in_turns, len(piece.claims)) for piece in found] == [(True, 1), (False, 2)]
    blocks = PROFILE.model_copy(update={"rounds": None})
    assert [piece.in_turns for piece in planning.pieces([named("one", "a", "b")], blocks, lambda _: False, 1.0)] == [
        False
    ]


def test_at_least_four_second_processes_tell_how_much_processes_differ() -> None:
    more = [named("two", "c", "d"), named("three", "e", "f")]
    (alone,) = planning.pieces([named("one", "a", "b")], PROFILE, lambda _: False, 1.0)
    assert alone.processes == 3
    assert [piece.processes for piece in planning.pieces(more, PROFILE, lambda _: False, 1.0)] == [3, 3]
    (least,) = planning.pieces([named("one", "a", "b"), *more], PROFILE, lambda _: False, 2.5 * alone.seconds)
    assert least.processes == 2


def test_what_the_limit_leaves_goes_into_further_processes_of_each() -> None:
    (least,) = planning.pieces([named("one", "a", "b")], PROFILE, lambda _: False, 1.0)
    (more,) = planning.pieces([named("one", "a", "b")], PROFILE, lambda _: False, 2 * least.seconds)
    assert more.processes > least.processes
    assert more.seconds <= 2 * least.seconds
    assert more.seconds > least.seconds
    (most,) = planning.pieces([named("one", "a", "b")], PROFILE, lambda _: False, 1e9)
    assert most.processes == planning.MOST_PROCESSES
    blocks = PROFILE.model_copy(update={"rounds": None})
    assert [each.processes for each in planning.pieces([named("one", "a", "b")], blocks, lambda _: False, 1e9)] == [1]


def clear(blocks: int) -> dict[str, tuple[float, ...]]:
    return {
        "a": tuple(2500.0 + 3 * i for i in range(blocks)),
        "b": tuple(1000.0 + i % 2 for i in range(blocks)),
        "c": tuple(1000.0 * (1 + i % 3) for i in range(blocks)),
    }


def test_between_looks_everything_open_goes_on() -> None:
    rule = UntilSettled(claims=(named("one", "a", "b"), named("two", "c", "b")))
    assert {each.implementation for each in rule(run_of(clear(2)), EXPECTED, RULES)} == {"a", "b", "c"}


def test_at_a_look_the_servers_of_a_settled_claim_are_left_alone() -> None:
    rule = UntilSettled(claims=(named("one", "a", "b"), named("two", "c", "b")))
    found = rule(run_of(clear(3)), EXPECTED, RULES)
    assert [(each.implementation, each.reason) for each in found] == [
        ("b", "claim two is open"),
        ("c", "claim two is open"),
    ]


def test_it_ends_when_all_is_settled_at_the_maximum_or_when_the_time_is_over() -> None:
    settled = UntilSettled(claims=(named("one", "a", "b"),))
    open_one = UntilSettled(claims=(named("two", "c", "b"),))
    late = UntilSettled(claims=open_one.claims, out_of_time=lambda _: True)
    assert settled(run_of(clear(3)), EXPECTED, RULES) == ()
    assert open_one(run_of(clear(8)), EXPECTED, RULES) == ()
    assert late(run_of(clear(2)), EXPECTED, RULES) == ()
