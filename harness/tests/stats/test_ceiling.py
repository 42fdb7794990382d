"""Ties that the load generator made."""

from harness.records.models import Gate, Outcome
from harness.stats.ceiling import ceilings
from harness.stats.values import collect
from harness.tests.stats.records import sample

BOUND = Gate(name="generator-bound", outcome=Outcome.WARN, value=0.97, threshold=0.85, word="generator-bound")


def test_implementations_tied_at_a_saturated_generator_are_noted() -> None:
    samples = [
        sample(name, block, speed).model_copy(update={"gates": gates})
        for name, speed, gates in (("a", 150_000, (BOUND,)), ("b", 149_500, (BOUND,)), ("c", 90_000, ()))
        for block in range(3)
    ]
    (note,) = ceilings(collect(samples), 0.01)
    assert note.implementations == ("a", "b")
    assert note.text == (
        "json c64: a, b are within 1% of each other at 150,000 requests/s with the generator saturated: "
        "this may be its ceiling, not theirs"
    )


def test_a_tie_below_the_generators_ceiling_is_no_ceiling() -> None:
    assert ceilings(collect([sample(name, 0, 100_000.0) for name in "ab"]), 0.01) == ()
