"""Which columns of a table fit a width: figures and intervals first, the others as far as there is room."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.cells import cell_len

from harness.report.cells import HEADERS, cells, remarks
from harness.stats.closed_loop import WRK
from harness.stats.model import Table

GAP = 2  # columns between two cells
NARROWEST_NAME = 12
LATENCY = ("p99 ms", "p50 ms")  # of the closed loop
FIRST = ("rank", "implementation", "req/s", "95 %", "µs CPU/req", "CPU 95 %")  # in every table, however narrow
MORE = (
    "note",
    "× ref",
    "n",
    "× ref [95 %]",
    "remarks",
    "CPU rank",
    *LATENCY,
    "memory",
    "startup time",
    "errors",
)  # by priority
INSTEAD = {"× ref [95 %]": "× ref", "remarks": "note"}  # the longer form of a column takes the place of the short one
PLACES = (  # from left to right
    *("rank", "implementation", "req/s", "95 %", "× ref", "× ref [95 %]", "µs CPU/req", "CPU 95 %", "CPU rank"),
    *("p50 ms", "p99 ms", "memory", "startup time", "n", "errors", "note", "remarks"),
)
LEFT = {"implementation", "remarks", "missing", "note"}


@dataclass(frozen=True, kw_only=True)
class Laid:
    """A table as it is printed: the columns that fit, and what their short forms stand for."""

    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    name_width: int  # of the column of implementations, whose longer names go on in the next line
    legend: tuple[tuple[str, str], ...]  # letters of the column "note", with their meaning


def lay(table: Table, width: int, said: frozenset[str] = frozenset()) -> Laid:
    """The columns for a terminal of this width; words in ``said`` are no remarks, being said of all rows above."""
    columns = _columns(table, said)
    noted = [remarks(row, said) for row in table.rows]
    legend = {text: _letter(number) for number, text in enumerate(dict.fromkeys(part for row in noted for part in row))}
    columns["note"] = [" ".join(legend[part] for part in row) for row in noted]
    widths = {
        name: max([cell_len(_header(name, table)), *(cell_len(text) for text in texts)])
        for name, texts in columns.items()
    }
    chosen = _chosen(columns, widths, width)
    others = sum(widths[name] for name in chosen if name != "implementation") + GAP * (len(chosen) - 1)
    name_width = min(widths["implementation"], max(NARROWEST_NAME, width - others))
    return Laid(
        headers=tuple(_header(name, table, name_width) for name in chosen),
        rows=tuple(zip(*(columns[name] for name in chosen), strict=True)),
        name_width=name_width,
        legend=tuple((letter, text) for text, letter in legend.items()) if "note" in chosen else (),
    )


def _columns(table: Table, said: frozenset[str]) -> dict[str, list[str]]:
    """The texts of every column by its name here."""
    show_level = table.level is None
    whole = [cells(row, show_level=show_level, said=said) for row in table.rows]
    brief = [cells(row, show_level=show_level, said=said, wide=False) for row in table.rows]
    ratio = HEADERS.index("× ref")
    names = [*HEADERS]
    names[names.index("95 %", names.index("µs CPU/req"))] = "CPU 95 %"
    columns = {name: [line[index] for line in whole] for index, name in enumerate(names)}
    columns["× ref"] = [line[ratio] for line in brief]
    columns["× ref [95 %]"] = [line[ratio] for line in whole]
    return columns


def _chosen(columns: Mapping[str, Sequence[str]], widths: Mapping[str, int], width: int) -> list[str]:
    """Columns by priority as long as they fit, in their places."""
    chosen = list(FIRST)
    room = width - sum(widths[name] + GAP for name in FIRST) + GAP
    for name in MORE:
        if _says_nothing(name, columns):
            continue
        short = INSTEAD.get(name)
        given = widths[short] + GAP if short in chosen else 0
        if name == "note":
            room -= widths[name] + GAP  # what is wrong with a figure is never left out
            chosen.append(name)
        elif widths[name] + GAP <= room + given:
            room -= widths[name] + GAP - given
            chosen = [*(kept for kept in chosen if kept != short), name]
    return [name for name in PLACES if name in chosen]


def _says_nothing(name: str, columns: Mapping[str, Sequence[str]]) -> bool:
    """Whether a column is better left out: no remarks, no errors, or the same number of replicates in every row."""
    texts = set(columns[name])
    if name == "n":
        return len(texts - {"0"}) < 2
    if name in LATENCY:
        return texts <= {"–"}
    return texts <= {"", "0"} if name in ("errors", "remarks", "note") else False


def _letter(number: int) -> str:
    """a to z, then aa to zz."""
    rest, last = divmod(number, 26)
    return (chr(ord("a") + rest - 1) if rest else "") + chr(ord("a") + last)


def _header(name: str, table: Table, name_width: int = len("implementation")) -> str:
    if name == "implementation" and name_width < len(name):
        return "name"
    if name in LATENCY and any(row.latency and row.latency.basis == WRK for row in table.rows):
        return f"wrk {name}"
    return {"CPU 95 %": "95 %", "× ref [95 %]": "× ref", "note": ""}.get(name, name)
