"""The sample of planted defects gives each module its share, and the score says how sure it is."""

from collections import Counter

from harness.tests.mutation import drawn, module, table

ALL = [f"harness.stats.a.x_f__mutmut_{n}" for n in range(300)] + [
    f"harness.verify.b.x_g__mutmut_{n}" for n in range(100)
]


def test_every_beginning_of_a_sample_gives_each_module_its_share() -> None:
    for size in (40, 80, 200):
        count = Counter(module(name) for name in drawn(ALL, size, seed=1))
        assert abs(count["harness.verify.b"] - size / 4) <= 2


def test_the_seed_decides_which_are_drawn() -> None:
    assert drawn(ALL, 40, seed=1) == drawn(ALL[::-1], 40, seed=1)
    assert set(drawn(ALL, 40, seed=1)) != set(drawn(ALL, 40, seed=2))


def test_the_score_has_an_interval_and_names_what_no_test_noticed() -> None:
    found = {**dict.fromkeys(ALL[:8], "killed"), ALL[8]: "timeout", ALL[9]: "survived", ALL[300]: "no tests"}
    assert table(found).splitlines() == [
        "harness.stats.a: 9 of 10 noticed",
        "harness.verify.b: 0 of 1 noticed",
        "all: 9 of 11 noticed, 1 by their time: 81.8% (95 % interval 52.3% to 94.9%)",
        "not noticed (survived): harness.stats.a.x_f__mutmut_9",
        "not noticed (no tests): harness.verify.b.x_g__mutmut_0",
    ]
