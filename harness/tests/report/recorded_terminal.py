"""Invented rankings as the terminal shows them; ``python -m harness.tests.report.recorded_terminal`` keeps them."""

import io
from functools import cache
from pathlib import Path

from harness.console import SafeConsole
from harness.records.models import Gate, Outcome, RunInfo
from harness.report import terminal
from harness.stats import nested
from harness.stats.model import Processes, Ranking, Standing
from harness.stats.ranking import rank
from harness.tests.doubles import invented

FOLDER = Path(__file__).parent / "recorded"
RANKING = FOLDER / "ranking.json"
WIDTHS = (80, 160)
PIPE = 0
ALONE = Processes(processes=1, windows=18, within=0.04, between=None, text=nested.ONE_PROCESS)
REPLICATES = 3
TYPES = ("json", "query")
LONG = ("quarkus-hibernate-reactive", "Java", "Quarkus", "None", "Postgres", "Full", "Fullstack", 0.87)


@cache
def made() -> tuple[RunInfo, Ranking]:
    """What is shown. The ranking is a recorded one: a change of the method changes no layout."""
    return ranked()[0], Ranking.model_validate_json(RANKING.read_text(encoding="utf-8"))


def ranked() -> tuple[RunInfo, Ranking]:
    """Five implementations on two tests: a tie, samples kept out, a row that is not ranked, a warning."""
    entries = (*invented.REAL, LONG)
    known = [invented.implementation(row).model_copy(update={"test_types": TYPES}) for row in entries]
    maker = invented.Maker("20260102-030405", known, blocks=REPLICATES, seed=7)
    maker.speeds[LONG[0]] = LONG[7]
    samples = []
    for replicate in range(REPLICATES):
        for kind in TYPES:
            level = invented.levels_of(kind)[-1]
            samples += [maker.sample(i.name, kind, level, replicate, invented.EPOCH) for i in known]
    cold = Gate(name="steady", outcome=Outcome.WARN, value=None, threshold=None, word="not steady")
    bad = Gate(name="errors", outcome=Outcome.FAIL, value=6, threshold=0, word="errors")
    for index, sample in enumerate(samples):
        gates = [gate for gate in sample.gates if gate.name != "contended"]
        if sample.test_type == "query":
            gates.append(cold)
        if (sample.implementation, sample.test_type, sample.replicate) == ("resteasy", "query", 1):
            gates.append(sample.gates[-1].model_copy(update={"outcome": Outcome.WARN, "word": "contended"}))
        if (sample.implementation, sample.test_type) == ("express", "query"):
            gates.append(bad)
        samples[index] = sample.model_copy(update={"gates": tuple(gates)})
    info = maker.info(started_at=invented.EPOCH).model_copy(
        update={"levels": {kind: invented.levels_of(kind)[-1:] for kind in TYPES}, "profile": "quick"}
    )
    verdicts = [invented.verdict(i.name, kind, 0, failed=False) for i in known for kind in TYPES]
    return info, rank(info, samples, [], verdicts)


def in_turns() -> tuple[RunInfo, Ranking]:
    """The same rows, each of windows of one process, whose variance to others is assumed."""
    info, ranking = made()
    return info.model_copy(update={"blocks_expected": 1}), turned(ranking)


def turned(ranking: Ranking) -> Ranking:
    """A ranking of replicates as one of windows; its figures stay as they are: this is about the layout."""
    rows = {
        name: tuple(
            row.model_copy(
                update={"throughput": _turned(row.throughput), "cpu_per_request": _turned(row.cpu_per_request)}
            )
            for row in test.headline.rows
        )
        for name, test in ranking.test_types.items()
    }
    tests = {
        name: test.model_copy(update={"levels": (), "headline": test.headline.model_copy(update={"rows": rows[name]})})
        for name, test in ranking.test_types.items()
    }
    return ranking.model_copy(update={"test_types": tests})


def _turned(standing: Standing | None) -> Standing | None:
    if standing is None:
        return None
    estimate = standing.estimate.model_copy(update={"replicates": 1, "values": (), "blocks": ()})
    return standing.model_copy(update={"estimate": estimate, "components": ALONE})


def recorded(width: int, *, turns: bool = False) -> str:
    """What a terminal of this width shows, or a pipe, without spaces at the ends of lines."""
    text = io.StringIO()
    out = terminal.console(text) if width == PIPE else SafeConsole(width=width, file=text, highlight=False)
    terminal.show(*(in_turns() if turns else made()), out)
    return "".join(f"{line.rstrip()}\n" for line in text.getvalue().splitlines())


if __name__ == "__main__":
    RANKING.write_text(ranked()[1].model_dump_json() + "\n", encoding="utf-8")
    for width in (*WIDTHS, PIPE):
        (FOLDER / f"ranking-{width or 'pipe'}.txt").write_text(recorded(width), encoding="utf-8")
        (FOLDER / f"in-turns-{width or 'pipe'}.txt").write_text(recorded(width, turns=True), encoding="utf-8")
