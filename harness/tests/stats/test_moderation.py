"""Tests for the fit of variances, with examples computed by hand and with simulated runs."""

import math
from dataclasses import asdict
from typing import Any

import numpy as np
import pytest
from scipy import special

from harness.stats import moderation, pairs
from harness.stats.moderation import RowMeans, estimate_prior, pool_tables
from harness.stats.ranking_model import Standing
from harness.stats.table_fit import fit_logs
from harness.stats.value_tables import SINGLE_TABLE, ValueTables
from harness.studies import coverage
from harness.studies.coverage import SimulatedRun, draw_run
from harness.tests.approve import approve
from harness.tests.stats.dense import luck

SimulatedValues = dict[str, dict[tuple[int, int], float]]


def compared(values: dict[str, dict[tuple[int, int], float]]) -> RowMeans:
    return ValueTables({SINGLE_TABLE: values}).means()


def difference(table: RowMeans, one: str, other: str) -> pairs.Differences:
    places = [np.array([list(table.names).index(name)]) for name in (one, other)]
    return pairs.differences(table, table, places[0], places[1])


def test_two_servers_are_compared_by_paired_t_test() -> None:
    from scipy import stats  # imported here, because the import takes a second in each process that collects tests

    a, b = [100.0, 120.0, 90.0, 111.0], [105.0, 131.0, 97.0, 112.0]
    table = compared({"a": {(i, 0): v for i, v in enumerate(a)}, "b": {(i, 0): v for i, v in enumerate(b)}})
    b_minus_a = difference(table, "b", "a")
    known = stats.ttest_rel(np.log(b), np.log(a))
    assert b_minus_a.value[0] == pytest.approx(np.log(np.array(b) / np.array(a)).mean())
    assert b_minus_a.p_values()[0] == pytest.approx(known.pvalue)
    assert b_minus_a.half_width(0.95)[0] == pytest.approx(
        (known.confidence_interval().high - b_minus_a.value[0]), rel=1e-9
    )


def test_variance_outlier_over_tables_widens_only_its_intervals() -> None:
    def drawn(name: str, speed: float, scatter: float) -> dict[tuple[int, int], float]:
        places = [(process, number) for process in range(4) for number in range(3)]
        return {(p, r): speed * math.exp(scatter * luck(name, p) + 0.01 * luck(name, p, r)) for p, r in places}

    calm = {f"s{n}": drawn(f"s{n}", 100 * 1.03**n, 0.004) for n in range(9)}
    seldom = ValueTables(
        {"a": {**calm, "wild": drawn("wild", 100.0, 0.5)}, "b": {**calm, "wild": drawn("s", 100.0, 0.004)}}
    )
    without = difference(compared(calm), "s0", "s1").half_width(0.95)
    for kind in "ab":  # in table b, the outlier's processes agree by chance
        assert difference(seldom.means(kind), "s0", "s1").half_width(0.95) < 1.1 * without
        assert difference(seldom.means(kind), "s0", "wild").half_width(0.95) > 0.3


def test_variance_outlier_differs_from_fourfold_server() -> None:
    """The numbers imitate fastify in Round 1.

    Its three processes differ by 13 %. Two degrees of freedom are too few to decide 171 pairs.
    """
    scatter = {**{f"s{n}": (1.2**n, 0.028) for n in range(18)}, "fastify": (4.2, 0.13)}
    drawn = {
        name: {(p, 0): speed * math.exp(deviation * luck("x", name, p)) for p in range(3)}
        for name, (speed, deviation) in scatter.items()
    }
    run = ValueTables({SINGLE_TABLE: drawn})
    place = run.standings(None, higher_is_better=False)["fastify"]
    assert run.prior.variance_outliers.keys() == {"fastify"}
    assert 5 <= place.rank.low <= place.position <= place.rank.high <= 13


def test_trial_variance_outlier_widens_only_its_intervals() -> None:
    places = [(process, number) for process in range(2) for number in range(5)]
    scatter = {**{f"s{n}": 0.02 for n in range(9)}, "wild": 0.5}
    run = {n: {(p, r): math.exp(s * luck(n, p, r) + 0.01 * luck(n, p)) for p, r in places} for n, s in scatter.items()}
    calm = compared({name: own for name, own in run.items() if name != "wild"})
    assert difference(compared(run), "s0", "s1").half_width(0.95) < 1.05 * difference(calm, "s0", "s1").half_width(0.95)
    assert difference(compared(run), "s0", "wild").half_width(0.95) > 0.2


def test_effects_of_rounds_are_not_noise() -> None:
    """A round slows both servers down by the same factor, so their ratio within a process is exact."""
    slow = [1.0, 0.5, 0.8, 0.7]
    table = ValueTables({}).fit(
        {n: {(0, i): s * f for i, f in enumerate(slow)} for n, s in (("a", 100.0), ("b", 200.0))}
    )
    assert table.between.mean[1] - table.between.mean[0] == pytest.approx(math.log(2))
    assert table.within.variance == pytest.approx([0.0, 0.0], abs=1e-20)


def test_trials_do_not_count_as_processes() -> None:
    """The variance between processes bounds an interval's width from below, however many trials there are."""
    generator, widths = np.random.default_rng(5), []
    for rounds in (5, 50, 500):
        logs = {
            name: {
                (p, r): math.exp(luck + generator.normal() * 0.05)
                for p, luck in ((0, x), (1, -x))
                for r in range(rounds)
            }
            for name, x in (("a", 0.05), ("b", -0.04), ("c", 0.06), ("d", -0.05))
        }
        widths.append(difference(compared(logs), "a", "b").half_width(0.95)[0])
    assert widths[2] > 0.6 * widths[0]
    assert widths[2] > 0.05


def test_single_process_assumes_five_percent_between_processes() -> None:
    exact = {name: {(0, r): value for r in range(4)} for name, value in (("a", 100.0), ("b", 200.0))}
    b_minus_a = difference(compared(exact), "b", "a")
    assert b_minus_a.squared_error[0] == pytest.approx(2 * moderation.ASSUMED_SD**2)
    assert b_minus_a.half_width(0.95)[0] == pytest.approx(
        special.stdtrit(moderation.MAX_DF, 0.975) * moderation.ASSUMED_SD * math.sqrt(2), rel=0.02
    )


def test_missing_a_slow_process_number_gives_no_advantage() -> None:
    """In process 1, all servers are half as fast, but server c has no values."""
    values = {
        name: {(p, r): speed * (0.5 if p == 1 else 1) * (1 + 0.001 * r) for p in range(3) for r in range(2)}
        for name, speed in (("a", 100.0), ("b", 150.0), ("c", 150.0))
    }
    del values["c"][1, 0], values["c"][1, 1]
    assert difference(compared(values), "b", "c").value[0] == pytest.approx(0.0, abs=1e-9)


DRIFTING = (88.9, 94.8, 101.3, 106.9, 110.3)


def test_shared_process_effect_widens_absolute_values_only() -> None:
    generator = np.random.default_rng(4)
    values = {
        name: {(p, r): v * math.exp(generator.normal() * 0.003) for p, v in enumerate(DRIFTING) for r in range(3)}
        for name in "abcd"
    }
    for standing in ValueTables({SINGLE_TABLE: values}).standings("a", higher_is_better=True).values():
        low, high = standing.estimate.low or 0.0, standing.estimate.high or 0.0
        logs = np.log(DRIFTING)
        half = special.stdtrit(4, 0.975) * logs.std(ddof=1) / math.sqrt(len(logs))
        assert np.log((low, high)) == pytest.approx((logs.mean() - half, logs.mean() + half), abs=0.01)
        assert (standing.to_reference.high or 9.0) < 1.02


@pytest.mark.parametrize(("drift", "most"), [(0.0, 0.09), (0.03, 0.13)])
def test_intervals_of_two_processes_cover_and_stay_bounded(drift: float, most: float) -> None:
    """The standard deviation is 3 % between processes and 5 % between trials."""
    generator, coverages, widths = np.random.default_rng(9), [], []
    for _ in range(80):
        shared, own = generator.normal(size=2) * drift, generator.normal(size=(4, 2)) * 0.03
        values = {
            str(i): {(p, r): math.exp(shared[p] + own[i, p] + generator.normal() * 0.05)
                     for p in range(2) for r in range(5)}
            for i in range(4)
        }  # fmt: skip
        for each in ValueTables({SINGLE_TABLE: values}).standings(None, higher_is_better=True).values():
            low, high = each.estimate.low or 0.0, each.estimate.high or math.inf
            coverages.append(low <= 1 <= high)
            widths.append(math.log(high / low) / 2)
    assert np.mean(coverages) >= 0.93
    assert np.median(widths) < most


def test_prior_df_reflects_how_much_variances_differ() -> None:
    names, dice, estimates = [f"s{i}" for i in range(20)], np.random.default_rng(3), []
    for unlike in (1.0, 0.0):  # 1.0: half of the servers have e² times the others' noise; 0.0: all are alike
        noise = 0.02 * np.exp(unlike * np.where(np.arange(20) % 2, 1, -1))[:, None, None]
        tables = [fit_logs(names, dice.normal(size=(20, 15, 1)) * noise, range(15)) for _ in range(2)]
        estimates.append(estimate_prior(tables).prior_df)
    assert estimates[0] < 4 < 20 < estimates[1]  # degrees of freedom


@pytest.mark.simulation
@pytest.mark.parametrize(
    ("name", "most_false", "min_power"),
    [
        ("2 processes x 5 rounds", 0.06, (0.02, 0.25)),
        ("1 process x 4 rounds", 0.08, (0.02, 0.05)),
        ("5 x 1", 0.08, (0.25, 0.8)),
        ("3 x 1", 0.08, (0.05, 0.4)),
        ("15 x 1", 0.08, (0.85, 0.99)),
    ],
)
def test_coverage_false_differences_and_power(name: str, most_false: float, min_power: tuple[float, float]) -> None:
    """With 150 runs, the shares are accurate to ±3.5 %. ``harness.studies.coverage`` computes them precisely."""
    shares = coverage.simulate(coverage.WORLDS[name], 150, seed=3)
    assert 0.92 <= shares.covered <= 0.99
    assert shares.false <= most_false
    assert shares.false_of_equal <= most_false
    assert shares.detected_10 >= min_power[0]
    assert shares.detected_20 >= min_power[1]


@pytest.mark.simulation
def test_pooled_mean_accounts_for_shared_processes() -> None:
    """More test types narrow the interval only if a process deviates differently in each of them."""
    widths: dict[float, list[float]] = {}
    for shared in (0.0, 1.0):
        world = SimulatedRun(truth=(0.0,) * 4, processes=5, shared=shared, window=0.01, correlation=0.0, drift=0.0)
        generator, covered = np.random.default_rng(6), []
        for _ in range(60):
            run = draw_run(world, generator)
            fits = [fit_logs(list("abcd"), logs, range(5)) for logs in run]
            joint = pool_tables(fits, list("abcd"), estimate_prior(fits))
            a_minus_b = difference(joint, "a", "b")
            covered.append(float(abs(a_minus_b.value[0]) <= a_minus_b.half_width(0.95)[0]))
            widths.setdefault(shared, []).append(a_minus_b.half_width(0.95)[0])
        assert np.mean(covered) >= 0.88
    assert np.mean(widths[1.0]) > 1.8 * np.mean(widths[0.0])


def test_five_hundred_servers_take_no_more_than_seconds() -> None:
    shares = coverage.simulate(coverage.WORLDS["500 servers, 3 x 1"], 1, seed=1)
    assert 0.93 <= shares.covered <= 1
    assert shares.false_of_equal == 0


def drawn(key: str, rows: int, processes: int, rounds: int = 1, drift: float = 0.05) -> SimulatedValues:
    """Return rows with values 10 % apart. Their noise differs up to threefold, and row 8 is an outlier."""
    return {
        f"s{row}": {
            (p, r): 100 * math.exp(
                row / 10 + drift * luck(key, p) + (0.5 if row == 8 else 0.01 * (1 + row % 3)) * luck(key, row, p)
                + 0.01 * luck(key, p, r) + 0.02 * luck(key, row, p, r) * (rounds > 1)
            )
            for p in range(processes) for r in range(rounds)
        }
        for row in range(rows)
    }  # fmt: skip


def without(values: SimulatedValues, *gone: tuple[str, int, int]) -> SimulatedValues:
    return {name: {at: own[at] for at in own if (name, *at) not in gone} for name, own in values.items()}


NESTED = without(drawn("n", 8, 3, 3), ("s1", 1, 0), ("s2", 2, 0), ("s2", 2, 1), ("s2", 2, 2), ("s4", 0, 2))
SPARSE = {**drawn("s", 5, 2, 2), "none": {}, "once": {(0, 1): 130.0}, "later": {(1, 0): 90.0, (1, 1): 99.0}}
SHAPES: dict[str, tuple[SimulatedValues, ...]] = {
    "one row or none": (drawn("o", 1, 3), {}, {"a": {}}),
    "one process": (drawn("p", 4, 1, 3),),
    "two processes": (drawn("2", 4, 2),),
    "without drift": (drawn("d", 5, 3, drift=0.0),),
    "outliers": ({**drawn("f", 10, 5), "same": {(p, 0): 150.0 for p in range(5) if p != 2}},),
    "windows": (NESTED, without(drawn("m", 6, 3, 2), ("s0", 2, 0), ("s0", 2, 1)), SPARSE),
    "small tables": (drawn("a", 3, 3), drawn("b", 3, 4), drawn("c", 2, 3)),
    "both": (drawn("x", 4, 4, 2), drawn("y", 4, 4), drawn("z", 5, 4)),
}


def describe_standing(row: Standing) -> str:
    estimate, ratio = row.estimate, row.to_reference
    interval = f"[{estimate.low:.7g}, {estimate.high:.7g}]" if estimate.low and estimate.high else "unknown"
    to_reference = f"{ratio.value:.6g} [{ratio.low or 0:.6g}, {ratio.high or 0:.6g}]" if ratio else "none"
    return f"{estimate.median:.7g} {interval}, rank {row.rank.label}, group {row.tie_group}, ratio {to_reference}"


def told(run: tuple[SimulatedValues, ...], deployments: dict[int, int] | None = None) -> dict[str, Any]:
    """Return the prior, the standings of each table, and the pooled means."""
    tables = ValueTables(dict(enumerate(run)), deployments or {})
    fits = list(tables.fits.values())
    standings_of_tables = [
        {name: describe_standing(row) for name, row in list(standings.items())[:4]}
        for place, each in enumerate(fits)
        for standings in [tables.standings("s1", each, alpha=0.04, floor=0.01 * place, higher_is_better=not place)]
    ]
    names = [name for name in fits[0].names if all(name in each.names for each in fits)]
    joint = pool_tables(fits, names, tables.prior) if len(fits) > 1 else None
    mean = np.nan_to_num([joint.mean, joint.squared_error, joint.df] if joint else [], nan=-1).tolist()
    return {
        "prior": asdict(tables.prior),
        "standings": standings_of_tables,
        "moderated": joint and joint.moderated,
        "mean": mean,
    }


def test_runs_of_all_shapes_are_fitted_as_approved() -> None:
    merged = told((drawn("k", 4, 5, 2) | drawn("k", 1, 7, 2), drawn("l", 2, 5)), {0: 0, 1: 1, 2: 0, 3: 1, 4: 2, 5: 3})
    approve("stats-fit", {**{name: told(run) for name, run in SHAPES.items()}, "merged": merged})
