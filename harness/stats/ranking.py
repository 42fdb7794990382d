"""The ranking of a run: from its records to tables by test type and level, and an overall score. Pure."""

import gc
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from statistics import median

from harness.records.models import AUDITS, NO_AUDITS, Load, ReplicateRecord, RunInfo, Sample, Verdict
from harness.stats import ceiling, duet, limit, priors, rules, sets
from harness.stats.model import Ranking, Score, Table, TestTypeRanking
from harness.stats.score import scores
from harness.stats.tables import Entry, Rules, table
from harness.stats.values import CellValues, best_level, collect
from harness.stats.verdicts import caveats, unranked

Cells = Mapping[tuple[str, str], Mapping[Load, CellValues]]
NO_CELLS: Mapping[Load, CellValues] = {}


@dataclass(frozen=True, kw_only=True)
class _Evidence:
    """What the tables of a run are made from."""

    run: RunInfo
    cells: Cells
    unranked: Mapping[tuple[str, str], str]  # (implementation, test type) -> reason
    first_answer: Mapping[str, float]
    rules: Rules  # with the error that the overall score may spend
    alphas: Mapping[
        str, float
    ]  # test type -> error that its tables may spend; it may have stopped at a look of its own
    duets: duet.Decisions
    ceilings: Mapping[tuple[str, Load], frozenset[str]]
    limits: tuple[str, ...] = ()  # implementations that are not ranked, because they are what the machine allows
    caveats: Mapping[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)  # what else to say of a row


def rank(
    run: RunInfo, samples: Sequence[Sample], replicates: Sequence[ReplicateRecord], verdicts: Sequence[Verdict]
) -> Ranking:
    """Rank every test type at every level and at its headline level, and overall."""
    with _collector_paused():
        return _rank(run, samples, replicates, verdicts)


@contextmanager
def _collector_paused() -> Iterator[None]:
    """No cyclic garbage collection meanwhile: it would scan a big run's records over and over, and all of them live.

    With 200,000 samples that is 40 % of the time.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            # All into the oldest generation, which takes no scan; the next collection would look through it at once.
            gc.freeze()
            gc.unfreeze()
            gc.enable()


def _rank(
    run: RunInfo, samples: Sequence[Sample], replicates: Sequence[ReplicateRecord], verdicts: Sequence[Verdict]
) -> Ranking:
    replication = rules.replication(run)
    duets = [sample for sample in samples if sample.duet_partner is not None]
    share = 1 - duet.ERROR_SHARE if duets or run.order == "duet" else 1.0
    decided = duet.decide_all(duets, alpha=(1 - replication.confidence) * (1 - share))
    cells: Cells = collect(samples)
    blocks = _blocks(cells)
    floor = run.noise_floor
    kept_out = unranked(run, samples, replicates, verdicts)
    ceilings = ceiling.ceilings(cells, rules.gates(run).ceiling_share)
    if sets.several(run):
        cells = sets.pooled(cells, run)
    known = priors.of_run(cells, kept_out)
    evidence = _Evidence(
        run=run,
        cells=cells,
        unranked=kept_out,
        first_answer=_first_answers(replicates),
        alphas={kind: share * rules.alpha_at(replication, len(blocks.get(kind, ()))) for kind in run.levels},
        rules=Rules(
            alpha=share * rules.alpha_at(replication, max(map(len, blocks.values()), default=0)),
            confidence=replication.confidence,
            reference=run.reference,
            throughput_floor=floor.throughput if floor else 0.0,
            cpu_floor=floor.cpu_per_request if floor else 0.0,
            throughput_prior=known.throughput,
            cpu_prior=known.cpu_per_request,
        ),
        duets=decided,
        limits=limit.limits(run),
        caveats=caveats(run, samples, verdicts),
        ceilings={(note.test_type, note.level): frozenset(note.implementations) for note in ceilings},
    )
    test_types = {kind: _test_type(kind, evidence) for kind in run.levels}
    return Ranking(
        run_id=run.run_id,
        reference=run.reference,
        confidence=replication.confidence,
        test_types=test_types,
        overall=_overall(evidence, test_types),
        noise_floor=floor,
        notes=(*(note.text for note in ceilings), *decided.notes, *_notes(run, test_types)),
    )


def _test_type(kind: str, evidence: _Evidence) -> TestTypeRanking:
    names = [info.name for info in evidence.run.implementations if kind in info.test_types]
    planned = list(evidence.run.levels[kind])
    seen = {level for name in names for level in evidence.cells.get((name, kind), NO_CELLS)}
    rule = replace(evidence.rules, alpha=evidence.alphas[kind])
    evidence = replace(evidence, rules=rule)
    unplanned = sorted(
        seen - set(planned), key=lambda level: (level.connections, level.queries or 0, level.factor or 0)
    )
    levels = planned + unplanned
    tables = tuple(
        table(
            kind,
            level,
            [_entry(name, kind, level, evidence) for name in names],
            evidence.rules,
            evidence.duets.at(kind, level),
        )
        for level in levels
    )
    return TestTypeRanking(test_type=kind, headline=_headline(kind, names, tables, evidence), levels=tables)


def _headline(kind: str, names: Sequence[str], tables: Sequence[Table], evidence: _Evidence) -> Table:
    """The table that a reader sees first, chosen as TechEmpower does.

    Where a test sweeps the query count, the highest count; where arrivals come at given rates, the highest factor at
    which most are ranked; elsewhere each implementation at the level with its highest median throughput. Servers that
    were measured in turns have most of their windows at one level, and the others for the load curve: a best level
    among these would be the luckiest window.
    """
    by_factor = [(table.level.factor, table) for table in tables if table.level and table.level.factor is not None]
    if by_factor:
        return max(by_factor, key=lambda found: (sum(row.ranked for row in found[1].rows), found[0]))[1]
    sweeps_queries = [table for table in tables if table.level and table.level.queries is not None]
    if sweeps_queries:
        return max(sweeps_queries, key=lambda table: (table.level.queries or 0) if table.level else 0)
    if len(tables) == 1:
        return tables[0]
    if windows := _windows(kind, names, evidence.cells):
        most = max(windows, key=lambda level: windows[level])
        return next(table for table in tables if table.level == most)
    best = {name: best_level(evidence.cells.get((name, kind), NO_CELLS)) for name in names}
    entries = [_entry(name, kind, best[name], evidence) for name in names]
    # Duets compare two servers at one level, so they order a headline only between rows shown at that level.
    by_throughput: dict[tuple[str, str], str] = {}
    by_cpu: dict[tuple[str, str], str] = {}
    for level in {level for level in best.values() if level is not None}:
        for mine, all_of_level in zip((by_throughput, by_cpu), evidence.duets.at(kind, level), strict=True):
            mine.update({pair: won for pair, won in all_of_level.items() if {best.get(n) for n in pair} == {level}})
    return table(kind, None, entries, evidence.rules, (by_throughput, by_cpu))


def _windows(kind: str, names: Sequence[str], cells: Cells) -> Counter[Load]:
    """By level, of a test type that was measured in turns; none otherwise."""
    return Counter(
        level
        for name in names
        for level, cell in cells.get((name, kind), NO_CELLS).items()
        for _ in cell.throughput_windows
    )


def _entry(name: str, kind: str, level: Load | None, evidence: _Evidence) -> Entry:
    cell = evidence.cells.get((name, kind), NO_CELLS).get(level) if level is not None else None
    reason = evidence.unranked.get((name, kind), "")
    if not reason and cell is None:
        reason = "missing"
    elif not reason and cell is not None and not cell.throughput:
        words = ", ".join(cell.failed_words) or "no valid response"
        reason = f"kept out by its gates in every attempt: {words}"
        if cell.anchored_to and not cell.failed_words:
            reason = f"no block that {cell.anchored_to} is in as well"
    if not reason and name in evidence.limits:
        reason = limit.reason(cell)
    told = evidence.caveats.get((name, kind), ())
    if (
        level is not None
        and evidence.limits
        and (far := limit.word(name, kind, level, evidence.limits, evidence.cells))
    ):
        told = (far, *told)
    tied_at_ceiling = level is not None and name in evidence.ceilings.get((kind, level), frozenset())
    return Entry(
        implementation=name,
        level=level if cell is not None else None,
        cell=cell,
        reason=reason,
        first_answer=evidence.first_answer.get(name),
        extra_words=(*((ceiling.WORD,) if tied_at_ceiling else ()), *told),
    )


def _blocks(cells: Cells) -> dict[str, set[int]]:
    """Blocks in which each test type was measured, duets apart."""
    found: defaultdict[str, set[int]] = defaultdict(set)
    for (_, test_type), levels in cells.items():
        for cell in levels.values():
            found[test_type].update(cell.blocks)
    return found


def _first_answers(replicates: Sequence[ReplicateRecord]) -> dict[str, float]:
    found: defaultdict[str, list[float]] = defaultdict(list)
    for record in replicates:
        if record.first_answer is not None:
            found[record.implementation].append(record.first_answer)
    return {name: median(values) for name, values in found.items()}


def _overall(evidence: _Evidence, test_types: Mapping[str, TestTypeRanking]) -> tuple[Score, ...]:
    # A throughput that is given, as the order service's arrivals are, scores nobody.
    headlines = {
        kind: ranking.headline
        for kind, ranking in test_types.items()
        if ranking.headline.level is None or ranking.headline.level.factor is None
    }
    cells = {
        kind: {
            row.implementation: evidence.cells[row.implementation, kind][row.level]
            for row in headline.rows
            if row.ranked and row.level is not None
        }
        for kind, headline in headlines.items()
    }
    names = [info.name for info in evidence.run.implementations if info.name not in evidence.limits]
    return scores(names, headlines, cells, evidence.rules)


def _notes(run: RunInfo, test_types: Mapping[str, TestTypeRanking]) -> list[str]:
    notes = []
    if sets.several(run):
        notes.append(
            f"{len(run.sets)} sets of machines ({', '.join(machines.name for machines in run.sets[:20])}"
            f"{', …' if len(run.sets) > 20 else ''}): every figure is the ratio to {run.reference} in the same block, "
            f"times the mean of {run.reference} over the sets; sets are the replicates"
        )
    if run.reference is None:
        notes.append("no reference implementation: there are no ratios to it and no overall score")
    else:
        lacking = [
            kind
            for kind, ranking in test_types.items()
            if not any(row.implementation == run.reference and row.ranked for row in ranking.headline.rows)
        ]
        if lacking:
            notes.append(f"not in the overall score, because {run.reference} has no figure there: {', '.join(lacking)}")
    if run.settings.get("network") == "bridge":
        notes.append(
            "all of this run went over a bridge network: its figures are not those of runs on the host's own network"
        )
    if run.tools.get(AUDITS) == NO_AUDITS:
        notes.append(
            "no load of this run was audited: a server that answers otherwise under load than when it is verified is "
            "seen by the probe and by the database's counters alone (./tfb doctor says what the load generator lacks)"
        )
    if run.status != "complete":
        notes.append(f"the run is {run.status}: intervals are those of the replicates so far")
    return notes
