"""Windows within processes: what rounds share goes, and processes, not windows, say how well a server is known."""

import numpy as np
import pytest

from harness.benchmarks.intervals import Turns, in_turns
from harness.stats import basis, nested, pairs
from harness.stats.moderation import UNLEARNED
from harness.stats.nested import Nested, Reading


def readings(processes: int, windows: int, *, seed: int, between: float = 0.1, within: float = 0.02) -> list[Reading]:
    generator = np.random.default_rng(seed)
    drift = np.random.default_rng(99).normal(size=processes * windows).cumsum()
    return [
        Reading(
            process=p, round=p * windows + w, log=float(luck + drift[p * windows + w] + generator.normal() * within)
        )
        for p, luck in enumerate(generator.normal(size=processes) * between)
        for w in range(windows)
    ]


def test_the_two_components_of_variance_come_apart() -> None:
    table = Nested(readings={f"s{i}": readings(40, 8, seed=i) for i in range(6)})
    found = nested.fit(table).components
    assert np.mean([each.within for each in found.values() if each.within]) == pytest.approx(0.02, rel=0.1)
    assert np.mean([each.between for each in found.values() if each.between]) == pytest.approx(0.1, rel=0.2)


def test_what_a_round_does_to_all_does_not_touch_their_ratio() -> None:
    one = [Reading(process=0, round=r, log=shift) for r, shift in enumerate((0.0, 0.5, -0.7))]
    other = [Reading(process=0, round=each.round, log=each.log + 0.3) for each in one]
    table, _ = nested.comparable(nested.fit(Nested(readings={"a": one, "b": other})), UNLEARNED)
    assert table.against(0).difference[1] == pytest.approx(0.3)


def test_a_window_that_was_lost_in_a_slow_round_makes_nobody_faster() -> None:
    shifts = (0.0, 0.0, -1.0, 0.0)
    full = [Reading(process=0, round=r, log=shift) for r, shift in enumerate(shifts)]
    servers = dict.fromkeys("abc", full) | {"d": full[:2] + full[3:]}
    table, _ = nested.comparable(nested.fit(Nested(readings=servers)), UNLEARNED)
    assert table.against(0).difference == pytest.approx(np.zeros(4))


def test_one_process_of_each_takes_fresh_ones_to_differ_by_what_is_assumed() -> None:
    table = Nested(readings={name: readings(1, 8, seed=i) for i, name in enumerate("abcd")})
    fit = nested.fit(table)
    compared, components = nested.comparable(fit, nested.prior([fit]))
    assert {each.scope for each in components.values()} == {"process"}
    assert compared.how.endswith("of processes (fresh ones taken to differ by 5 %: no server had a second one)")
    least = 1.96 * np.sqrt(2) * nested.ASSUMED_BETWEEN
    assert least < compared.against(0).half_width(0.95)[1] < 1.2 * least


def test_one_window_of_one_process_each_decides_nothing() -> None:
    table = nested.fit(Nested(readings={name: readings(1, 1, seed=i) for i, name in enumerate("abcd")}))
    compared, _ = nested.comparable(table, nested.prior([table]))
    assert np.isnan(compared.means.squared_error).all()
    assert (compared.means.freedom == 0).all()


def test_a_single_process_among_others_takes_their_variance_between_processes() -> None:
    servers = {f"s{i}": readings(3, 8, seed=i) for i in range(24)}
    servers["s0"] = [each for each in servers["s0"] if each.process == 0]
    fit = nested.fit(Nested(readings=servers))
    compared, components = nested.comparable(fit, nested.prior([fit]))
    assert compared.basis == "moderated"
    assert components["s0"].scope == "implementation"
    assert np.sqrt(compared.means.squared_error[0]) == pytest.approx(0.1, rel=0.5)
    assert compared.means.squared_error[0] > 2 * compared.means.squared_error[1]


def test_what_one_variance_of_processes_rests_on_is_said_with_its_degrees_of_freedom() -> None:
    """Two of four servers have a second process, later than the first: one difference beyond what the time did to both.

    That is filled up to three degrees of freedom by what is assumed, and draws near to it.
    """
    servers = {f"s{i}": readings(2 if i < 2 else 1, 8, seed=i) for i in range(4)}
    tables = [nested.fit(Nested(readings=servers)) for _ in range(2)]
    compared, _ = nested.comparable(tables[0], nested.prior(tables))
    assert "of processes (one for the run, on 3.0 degrees of freedom)" in compared.how
    assert "of windows (moderated over the run)" in compared.how
    many = {f"s{i}": readings(2, 8, seed=i, between=0.01) for i in range(7)}
    few = nested.prior([nested.fit(Nested(readings=servers))])
    alike = nested.prior([nested.fit(Nested(readings=many))])
    assert few.between > alike.between
    assert few.between_freedom < alike.between_freedom == pytest.approx(6 / nested.SHARED)


def test_tables_of_replicates_teach_what_those_measured_in_turns_do_not_know_of_processes() -> None:
    generator = np.random.default_rng(1)
    plain = basis.fitted(generator.normal(0, 0.1, (12, 4)), [f"s{i}" for i in range(12)])
    alone = nested.fit(Nested(readings={f"s{i}": readings(1, 8, seed=i) for i in range(12)}))
    assert not nested.prior([alone]).usable
    assert nested.prior([alone], [plain]).freedom == basis.prior([plain]).freedom > 0


def test_more_windows_never_make_up_for_processes() -> None:
    few, many = (
        nested.fit(Nested(readings={f"s{i}": readings(3, windows, seed=i) for i in range(8)})) for windows in (4, 40)
    )
    widths = [nested.comparable(fit, nested.prior([fit]))[0].means.squared_error.mean() for fit in (few, many)]
    assert widths[1] > widths[0] / 3


@pytest.mark.parametrize(("processes", "single"), [(2, 0), (3, 0), (2, 2)])
def test_intervals_of_runs_in_turns_hold_the_truth_and_ties_stay_ties(processes: int, single: int) -> None:
    found = in_turns(Turns(servers=4, processes=processes, single=single, tables=3), 25)
    assert found.held > 0.93
    assert found.false <= 0.05


def test_six_tests_of_one_process_share_its_luck_and_are_worth_less_than_two() -> None:
    servers = {name: readings(2, 4, seed=i) for i, name in enumerate("abcd")} | {"e": readings(1, 8, seed=9)}
    tables = [nested.fit(Nested(readings=servers)) for _ in range(6)]
    known = nested.prior(tables)
    assert known.between_freedom == pytest.approx(4 * 6 / 3.5 / nested.SHARED)
    assert known.between > 0


def test_a_second_process_of_two_servers_decides_what_differs_twofold_in_all_four() -> None:
    generator = np.random.default_rng(5)
    counts = {"a": 2, "b": 2, "c": 1, "d": 1}
    tables = [
        nested.fit(
            Nested(
                readings={
                    name: [
                        Reading(process=r * count // 4, round=r, log=place * np.log(2) + 0.06 * generator.normal())
                        for r in range(4)
                    ]
                    for place, (name, count) in enumerate(counts.items())
                }
            )
        )
        for _ in range(6)
    ]
    table, components = nested.comparable(tables[0], nested.prior(tables))
    assert {each.scope for each in components.values()} == {"implementation"}
    assert pairs.significant(table, 0.05).rejected[np.triu_indices(4, 1)].all()


def test_a_row_s_interval_lies_around_its_own_median() -> None:
    fit = nested.fit(Nested(readings={name: readings(2, 4, seed=i) for i, name in enumerate("abc")}))
    means = nested.comparable(fit, nested.prior([fit]))[0].means
    shifted = np.exp(means.mean) * 3  # by rounds that the others did not have
    low, high = means.intervals(0.95, shifted)
    assert np.isfinite(low).all()
    assert (low < shifted).all()
    assert low * high == pytest.approx(shifted**2)
    assert np.log(high / low) == pytest.approx(np.log(np.divide(*means.intervals(0.95, np.exp(means.mean))[::-1])))


def test_two_processes_that_agree_by_luck_are_not_better_known_than_their_windows() -> None:
    """Two servers whose processes have the same difference to the last digit, with windows of 2 %: a tie."""
    generator = np.random.default_rng(3)
    found: dict[str, list[Reading]] = {"a": [], "b": []}
    for process in range(2):
        noise = {name: generator.normal(0, 0.02, 30) for name in found}
        for name, difference in (("a", 0.0), ("b", -0.006)):
            own = noise[name] - noise[name].mean() + difference  # the mean of each process is exact
            found[name] += [Reading(process=process, round=30 * process + r, log=own[r]) for r in range(30)]
    table, _ = nested.comparable(nested.fit(Nested(readings=found)), UNLEARNED)
    assert not pairs.significant(table, 0.05).rejected.any()
    low, high = (pairs.half_widths(table, 0.95)[0, 1] * sign for sign in (-1, 1))
    assert low < -0.006 < high
