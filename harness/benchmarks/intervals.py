"""The tables of docs/method.md that come from simulated servers: ``python -m harness.benchmarks.intervals [runs]``.

Each row: share of 95 % intervals of ratios that hold the truth, share of runs with a false difference among equal
servers (Holm at 5 % over the table), mean half-width, and on which basis the rows were compared.
"""

import argparse
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from harness.benchmarks import simulation
from harness.benchmarks.command import command
from harness.benchmarks.simulation import DRIFTING, NOISY, QUIET, Logs
from harness.errors import Exit
from harness.stats import basis, nested, pairs, ranks
from harness.stats.basis import Comparable
from harness.stats.nested import Nested, Reading

WORLDS = {"quiet": QUIET, "drifting": DRIFTING, "noisy": NOISY}
LEVEL = 0.05
HEAD = "| servers | replicates | variances | machine | intervals hold | false differences | half-width | basis |"
RULE = "|---|---|---|---|---|---|---|---|"


@dataclass(frozen=True, kw_only=True)
class Case:
    """Servers of a table: how many, how often measured, and how much their variances and errors differ."""

    servers: int
    replicates: int
    prior: float = np.inf  # degrees of freedom of the scaled inverse chi² that true variances come from; inf: equal
    spread: float = 1.0  # standard deviations of the first and the last server differ by this factor, evenly between
    heavy: bool = False  # errors from t(5) instead of normal ones
    deviation: float = 0.05
    drift: float = 0.0  # step of the block effects' random walk

    @property
    def variances(self) -> str:
        """In words."""
        if self.spread > 1:
            return f"x{self.spread:g} in deviation"
        base = "equal" if np.isinf(self.prior) else f"inverse chi²({self.prior:g})"
        return f"{base}, errors t(5)" if self.heavy else base


@dataclass(frozen=True, kw_only=True)
class Result:
    """Shares over the runs of a case, and how often each basis was used."""

    held: float
    false: float
    half_width: float
    bases: Counter[str]

    @property
    def cells(self) -> str:
        """As columns of a Markdown table."""
        total = sum(self.bases.values())
        words = ", ".join(f"{name} {count / total:.0%}" for name, count in self.bases.most_common())
        return f"{self.held:.1%} | {self.false:.1%} | ±{np.expm1(self.half_width):.1%} | {words}"


def draw(case: Case, generator: np.random.Generator) -> Logs:
    """Logs of equal servers: servers x replicates."""
    shape = case.servers, case.replicates
    variance = np.full(case.servers, case.deviation**2)
    if np.isfinite(case.prior):
        variance *= case.prior / generator.chisquare(case.prior, case.servers)
    deviation = np.sqrt(variance) * np.geomspace(1 / np.sqrt(case.spread), np.sqrt(case.spread), case.servers)
    errors = generator.standard_t(5, shape) / np.sqrt(5 / 3) if case.heavy else generator.normal(size=shape)
    walk = np.cumsum(generator.normal(size=(1, case.replicates)) * case.drift, axis=1)
    return np.asarray(deviation[:, None] * errors + walk)


def judge(tables: Sequence[Comparable]) -> Result:
    """What equal servers came out as."""
    held, false, widths = [], 0, []
    for table in tables:
        contrast = table.against(0)
        half = contrast.half_width(0.95)[1:]
        known = np.isfinite(half)
        if known.any():  # a table without intervals holds nothing and decides nothing
            held.append(float((np.abs(contrast.difference[1:]) <= half)[known].mean()))
            widths.append(float(np.median(half[known])))
        false += bool(pairs.significant(table, LEVEL).rejected.any())
    return Result(
        held=float(np.mean(held)),
        false=false / len(tables),
        half_width=float(np.mean(widths)),
        bases=Counter(table.basis for table in tables),
    )


def replicated(case: Case, runs: int, seed: int = 31) -> Result:
    """One figure a fresh process; the prior is learned from the one table."""
    generator = np.random.default_rng(seed)
    names = [f"s{server}" for server in range(case.servers)]
    return judge([basis.alone(draw(case, generator), names) for _ in range(runs)])


def in_world(world: str, servers: int, replicates: int, runs: int, seed: int = 32) -> Result:
    """Servers of a simulated machine, whose deviations between processes differ fourfold."""
    drawn = simulation.logs(WORLDS[world], [1.0] * servers, replicates, runs, np.random.default_rng(seed))
    names = [f"s{server}" for server in range(servers)]
    return judge([basis.alone(logs, names) for logs in drawn])


@dataclass(frozen=True, kw_only=True)
class Turns:
    """A run of a few processes of each server, measured in turns: ``windows`` rounds while a process is up."""

    servers: int
    processes: int
    windows: int = 8
    between: float = 0.02  # standard deviation of processes
    shared: float = 0.7  # share of its variance that a process has in all test types
    within: float = 0.05  # of windows
    drift: float = 0.02  # of rounds, a random walk
    tables: int = 6
    lost: float = 0.0  # share of windows that a gate kept out, or that time did not last for
    certain: int = 2  # windows of a process, the first ones, that it has in any case
    heavy: bool = False  # windows with errors from t(3) instead of normal ones
    single: int = 0  # servers, the last ones, that keep their first process to the end

    @property
    def few(self) -> bool:
        """Whether some cells have a single window: the row then says how noisy these are."""
        return self.certain < 2

    @property
    def cells(self) -> str:
        """As columns of a Markdown table."""
        once = f", {self.single} with one" if self.single else ""
        windows = f"{self.certain} to {self.windows}" if self.few else str(self.windows)
        errors = f", of {self.within:.0%}{', t(3)' if self.heavy else ''}" if self.few else ""
        return f"{self.servers} | {self.processes}{once} | {windows}{errors} | {self.between:.0%} | {self.lost:.0%}"


def in_turns(case: Turns, runs: int, seed: int = 33) -> Result:
    """Equal servers in nested runs; the prior is learned from all tables, and the first one is judged."""
    generator = np.random.default_rng(seed)
    tables = []
    for _ in range(runs):
        luck = generator.normal(size=(case.servers, case.processes))
        fits = [nested.fit(_turns(case, luck, generator)) for _ in range(case.tables)]
        tables.append(nested.comparable(fits[0], nested.prior(fits))[0])
    return judge(tables)


def _turns(case: Turns, luck: Logs, generator: np.random.Generator) -> Nested:
    own = np.sqrt(1 - case.shared) * generator.normal(size=luck.shape)
    process = case.between * (np.sqrt(case.shared) * luck + own)
    if case.single:
        process[-case.single :] = process[-case.single :, :1]
    rounds = np.cumsum(generator.normal(size=case.processes * case.windows) * case.drift)
    shape = (*luck.shape, case.windows)
    errors = generator.standard_t(3, shape) / np.sqrt(3) if case.heavy else generator.normal(size=shape)
    noise = case.within * errors
    kept = generator.random(size=noise.shape) >= case.lost
    kept[..., : case.certain] = True
    logs = process[..., None] + rounds.reshape(case.processes, case.windows) + noise
    return Nested(
        readings={
            f"s{server}": [
                Reading(
                    process=0 if server >= case.servers - case.single else p,
                    round=p * case.windows + w,
                    log=float(logs[server, p, w]),
                )
                for p in range(case.processes)
                for w in range(case.windows)
                if kept[server, p, w]
            ]
            for server in range(case.servers)
        }
    )


def rank_width(servers: int, replicates: int, deviations: tuple[float, float], range_: float, seed: int = 34) -> float:
    """Median width of rank intervals: speeds evenly spread over e to the ``range_``, deviations evenly over a range."""
    generator = np.random.default_rng(seed)
    deviation = generator.uniform(*deviations, size=(servers, 1))
    truth = np.linspace(0, range_, servers)[:, None]
    logs = truth + deviation * generator.normal(size=(servers, replicates))
    table = basis.alone(np.asarray(logs), [str(server) for server in range(servers)])
    decided = pairs.significant(table, LEVEL).rejected
    found = ranks.ranks(table.means.mean, pairs.better(table, decided, 0.0, higher=True))
    return float(np.median(found.high - found.low + 1))


def cases() -> list[Case]:
    """What docs/method.md shows."""
    found = [
        Case(servers=servers, replicates=replicates, prior=prior, heavy=heavy, spread=spread, drift=drift)
        for servers in (4, 8, 24)
        for replicates in (3, 5)
        for prior, heavy, spread, drift in (
            (np.inf, False, 1.0, 0.02),
            (3.0, False, 1.0, 0.0),
            (6.0, True, 1.0, 0.0),
            (np.inf, False, 4.0, 0.02),
        )
    ]
    found += [Case(servers=2, replicates=3, drift=0.02), Case(servers=8, replicates=15, prior=3.0)]
    return [*found, Case(servers=100, replicates=3, prior=6.0), Case(servers=500, replicates=3, prior=6.0)]


TURNS_HEAD = (
    "| servers | processes | windows each | between | lost | intervals hold | false differences | half-width | basis |"
)
TURNS_RULE = "|---|---|---|---|---|---|---|---|---|"


def turns_cases() -> list[Turns]:
    """Likewise of runs in turns."""
    found = [
        Turns(servers=servers, processes=processes, between=between, lost=lost)
        for servers in (4, 8)
        for processes in (2, 3)
        for between, lost in ((0.0, 0.0), (0.02, 0.0), (0.02, 0.2))
    ]
    found += [
        Turns(servers=4, processes=2, single=2, windows=2, between=between, within=0.08)
        for between in (0.0, 0.03, 0.08, 0.15)
    ]
    found += [Turns(servers=2, processes=2, windows=4), Turns(servers=4, processes=1, windows=5, between=0.0)]
    found += [Turns(servers=2, processes=3, windows=4, between=between) for between in (0.02, 0.1)]
    found.append(Turns(servers=4, processes=2, single=3, windows=4))
    for windows, lost in ((2, 0.5), (2, 0.85), (4, 0.5)):
        few = Turns(servers=5, processes=1, windows=windows, certain=1, lost=lost, between=0.05, drift=0.1)
        found += [replace(few, within=within, heavy=heavy) for within in (0.05, 0.2) for heavy in (False, True)]
    return found


def main(argv: Sequence[str]) -> int:
    """Print the tables as Markdown."""
    parser = argparse.ArgumentParser(prog="python -m harness.benchmarks.intervals", description=__doc__)
    parser.add_argument("runs", nargs="?", type=int, default=1000, help="simulated runs of a row (default 1000)")
    runs = parser.parse_args(list(argv)).runs
    print(f"{HEAD}\n{RULE}")
    for number, case in enumerate(cases()):
        result = replicated(case, runs if case.servers < 100 else max(runs // 10, 10), seed=100 + number)
        machine = "drifting" if case.drift else "quiet"
        print(f"| {case.servers} | {case.replicates} | {case.variances} | {machine} | {result.cells} |", flush=True)
    print(f"\n{HEAD}\n{RULE}")
    for world in WORLDS:
        for servers in (2, 8):
            for replicates in (3, 5):
                result = in_world(world, servers, replicates, runs, seed=10 * servers + replicates)
                print(f"| {servers} | {replicates} | x4 in deviation | {world} | {result.cells} |", flush=True)
    print(f"\n{TURNS_HEAD}\n{TURNS_RULE}")
    for number, turns in enumerate(turns_cases()):
        result = in_turns(turns, max(runs // 2, 1), seed=200 + number)
        print(f"| {turns.cells} | {result.cells} |", flush=True)
    print("\n| servers | replicates | deviation | speeds over a factor of | median width of ranks |")
    print("|---|---|---|---|---|")
    for range_ in (4.0, 7.0, 10.0):
        for low, high in ((0.02, 0.03),):
            width = rank_width(500, 3, (low, high), range_)
            print(f"| 500 | 3 | {low:.0%} to {high:.0%} | {np.exp(range_):,.0f} | {width:.0f} |", flush=True)
    return Exit.OK


if __name__ == "__main__":
    command(main)
