"""The words of a ranking's rows, the same in every rendering for people."""

from harness.report import wording
from harness.stats.model import Estimate, Ratio, Row, Score, Standing, Table
from harness.units import format_bytes, format_micros, format_rate, format_seconds

HEADERS = (
    "rank",
    "implementation",
    "req/s",
    "95 %",
    "× ref",
    "µs CPU/req",
    "95 %",
    "CPU rank",
    "p50 ms",
    "p99 ms",
    "memory",
    "startup time",
    "n",
    "errors",
    "remarks",
)
OVERALL_HEADERS = ("rank", "implementation", "score", "CPU score", "missing")


def title(table: Table) -> str:
    """``json at c64``, or ``json, each at its best level``."""
    where = f"at {table.level.label}" if table.level else "each at its best level"
    return f"{table.test_type}, {where}"


def cells(row: Row, *, show_level: bool, wide: bool = True, said: frozenset[str] = frozenset()) -> tuple[str, ...]:
    """One row as text, in the order of HEADERS; without the words that are said of all rows already."""
    name = row.implementation + (f" ({row.level.label})" if show_level and row.level else "")
    throughput, cpu = row.throughput, row.cpu_per_request
    return (
        throughput.rank.label if throughput and row.ranked else "–",
        name,
        format_rate(throughput.estimate.median if throughput else None),
        interval(throughput.estimate, 1.0) if throughput else "–",
        ratio(throughput.to_reference if throughput else None, interval=wide),
        format_micros(cpu.estimate.median if cpu else None),
        interval(cpu.estimate, 1e6) if cpu else "–",
        cpu.rank.label if cpu and row.ranked else "–",
        _latency(row, "50"),
        _latency(row, "99"),
        format_bytes(row.rss_peak),
        format_seconds(row.first_answer),
        str(replicates(throughput)),
        str(row.errors),
        ", ".join(remarks(row, said)),
    )


def _latency(row: Row, point: str) -> str:
    """Of the closed loop, in milliseconds."""
    found = row.latency.percentiles.get(point) if row.latency else None
    return "–" if found is None else f"{found.median * 1e3:,.2f}"


def remarks(row: Row, said: frozenset[str] = frozenset()) -> list[str]:
    """What a reader must know of a row, the gravest first."""
    found = [] if row.ranked else [row.reason or "not ranked"]
    found += [wording.name(word) for word in row.words if word not in said]
    if row.dropped and (row.ranked or row.dropped < row.samples):
        found.append(f"{row.dropped} of {row.samples} samples kept out")
    return found


def replicates(standing: Standing | None) -> int:
    """How many replicates a figure rests on."""
    return standing.estimate.replicates if standing else 0


def interval(estimate: Estimate, scale: float) -> str:
    """``[low, high]``, or an en dash with fewer than two replicates."""
    if estimate.low is None or estimate.high is None:
        return "–"
    low, high = estimate.low * scale, estimate.high * scale
    digits = 0 if high >= 100 else 1 if high >= 10 else 2
    return f"[{low:,.{digits}f}, {high:,.{digits}f}]"


def ratio(value: Ratio | None, *, interval: bool = True) -> str:
    """``1.12× [1.08, 1.17]``, or without its interval."""
    if value is None:
        return "–"
    if value.low is None or value.high is None or value.low == value.high or not interval:
        return f"{value.value:.2f}×"
    return f"{value.value:.2f}× [{value.low:.2f}, {value.high:.2f}]"


def overall_cells(score: Score) -> tuple[str, ...]:
    """One row of the overall table, in the order of OVERALL_HEADERS."""
    text = "–" if score.score is None else ratio(Ratio(value=score.score, low=score.low, high=score.high))
    return (
        score.rank.label if score.rank else "–",
        score.implementation,
        text,
        "–" if score.cpu_score is None else f"{score.cpu_score:.2f}×",
        ", ".join(score.missing),
    )
