"""The sequential rule looks when it may, stops what is settled and says what is not."""

from harness.benchmarks.simulation import sample
from harness.plan.profile import Replication
from harness.records.models import Sample
from harness.stats.stopping import Undecided, undecided

RULE = Replication(minimum=5, maximum=12, looks=(5, 8, 12), half_width=0.02)
LUCK = (1.0, 1.01, 0.99, 1.005, 0.995, 1.008, 0.992, 1.003, 0.997, 1.002, 0.998, 1.0)
WILD = (1.0, 1.3, 0.8, 1.1, 0.7, 1.2, 0.9, 1.25, 0.75, 1.15, 0.85, 1.0)


def blocks(count: int, **servers: tuple[float, tuple[float, ...]]) -> list[Sample]:
    return [
        sample(name, block, speed * noise[(block + 3 * index) % 12])
        for block in range(count)
        for index, (name, (speed, noise)) in enumerate(servers.items())
    ]


def open_names(samples: list[Sample], names: str, rule: Replication = RULE) -> list[str]:
    return [each.implementation for each in undecided(samples, [(name, "json") for name in names], rule)]


def test_nothing_is_decided_before_the_first_look() -> None:
    found = undecided(blocks(3, a=(100, LUCK), b=(900, LUCK)), [("a", "json"), ("b", "json")], RULE)
    assert found[0] == Undecided(implementation="a", test_type="json", reason="3 of at least 5 replicates")
    assert len(found) == 2


def test_before_the_first_block_everything_expected_is_open() -> None:
    assert open_names([], "ab") == ["a", "b"]


def test_a_clear_order_is_decided_at_the_first_look() -> None:
    assert open_names(blocks(5, a=(100, LUCK), b=(150, LUCK)), "ab") == []


def test_a_tie_known_within_the_half_width_is_settled_as_a_tie() -> None:
    calm = tuple(1 + (noise - 1) / 10 for noise in LUCK)
    assert open_names(blocks(5, a=(100, calm), b=(100, calm)), "ab") == []


def test_a_wide_tie_stays_open_and_names_the_other_and_the_width() -> None:
    found = undecided(blocks(5, a=(100, WILD), b=(100, WILD)), [("a", "json"), ("b", "json")], RULE)
    assert [each.implementation for each in found] == ["a", "b"]
    assert found[0].reason.startswith("throughput: order against b is open, ratio known to ±")
    assert found[0].reason.endswith("wanted ±2.0%")


def test_only_the_open_pair_continues() -> None:
    samples = blocks(5, a=(100, WILD), b=(100, WILD), c=(10_000, LUCK))
    assert open_names(samples, "abc") == ["a", "b"]


def test_what_was_decided_at_a_look_stays_decided_between_looks_and_later() -> None:
    samples = blocks(5, a=(100, WILD), b=(100, WILD), c=(10_000, LUCK))
    later = [each for each in blocks(8, a=(100, WILD), b=(100, WILD), c=(10_000, LUCK)) if each.implementation != "c"]
    later += [each for each in samples if each.implementation == "c"]
    assert open_names([each for each in later if each.block < 6], "abc") == ["a", "b"]
    assert "c" not in open_names(later, "abc")


def test_between_looks_the_reason_names_the_next_look() -> None:
    found = undecided(blocks(6, a=(100, WILD), b=(100, WILD)), [("a", "json"), ("b", "json")], RULE)
    assert found[0].reason.endswith("; next look at 8 replicates")


def test_the_maximum_ends_the_run_whatever_is_open() -> None:
    assert open_names(blocks(12, a=(100, WILD), b=(100, WILD)), "ab") == []


def test_without_looks_a_run_has_its_fixed_number_of_replicates() -> None:
    fixed = Replication(minimum=3, maximum=3)
    samples = blocks(3, a=(100, WILD), b=(100, WILD))
    assert open_names([each for each in samples if each.block < 2], "ab", fixed) == ["a", "b"]
    assert open_names(samples, "ab", fixed) == []


def test_an_implementation_without_a_valid_sample_stays_open_and_does_not_hold_up_the_others() -> None:
    samples = blocks(5, a=(100, LUCK), b=(150, LUCK))
    found = undecided(samples, [("a", "json"), ("b", "json"), ("lost", "json")], RULE)
    assert found == (Undecided(implementation="lost", test_type="json", reason="no valid sample yet"),)


def test_a_lone_implementation_needs_a_narrow_interval_of_its_own() -> None:
    assert open_names(blocks(5, a=(100, LUCK)), "a") == []
    found = undecided(blocks(5, a=(100, WILD)), [("a", "json")], RULE)
    assert found[0].reason.startswith("throughput: known to ±")


def test_cpu_per_request_must_be_settled_too() -> None:
    samples = [
        each.model_copy(update={"cpu_per_request": WILD[(each.block * (1 + (each.implementation == "b"))) % 12]})
        for each in blocks(5, a=(100, LUCK), b=(150, LUCK))
    ]
    found = undecided(samples, [("a", "json"), ("b", "json")], RULE)
    assert [each.reason.split(":")[0] for each in found] == ["CPU per request", "CPU per request"]
