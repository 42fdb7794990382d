"""Both runtimes take turns, and the ratios are of rounds that both have."""

from collections import defaultdict

from harness.benchmarks import containers, simulation


def test_each_round_has_both_runtimes_in_a_seeded_order() -> None:
    order = list(containers.turns(20, seed=1))
    assert order == list(containers.turns(20, seed=1))
    assert sorted(order) == sorted((n, r) for n in range(20) for r in containers.RUNTIMES)
    assert {order[2 * n][1] for n in range(20)} == set(containers.RUNTIMES)


def test_the_ratio_is_docker_over_local_within_rounds() -> None:
    cells: dict[containers.Cell, containers.Figures] = defaultdict(containers.Figures)
    for number, speed in enumerate((1000.0, 2000.0, 4000.0)):
        cells["x", "json"].add("local", number, simulation.sample("x", 0, speed))
        cells["x", "json"].add("docker", number, simulation.sample("x", 0, speed * 0.8))
    cells["x", "json"].add("docker", 9, simulation.sample("x", 0, 1.0))
    cells["y", "db"].add("local", 0, simulation.sample("y", 0, 500.0))
    lines = containers.report(3, "quick", cells, 60.0).splitlines()
    x = next(line for line in lines if line.startswith("| x"))
    assert "0.80× [0.80, 0.80]" in x
    assert "1.25× [1.25, 1.25]" in x
    assert next(line for line in lines if line.startswith("| y")).count("–") == 4
