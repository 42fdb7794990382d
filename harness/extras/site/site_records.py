"""A static site's data, stored in ``site.json``. tfb generates all pages from this file, except the pages of runs."""

import re
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from urllib.parse import quote

from pydantic import Field

from harness.dashboard.run_documents import DashboardRun
from harness.errors import StoreError
from harness.records import safe_read
from harness.records.loads import Scenario
from harness.records.reader import first_error
from harness.records.record import EpochSeconds, Record
from harness.records.run_info import ImplementationInfo
from harness.report.summary import OVERALL
from harness.report.tables import sort_by_position
from harness.stats.ranking_model import Quantity, Standing
from harness.stats.unranked import is_ranked

FILE = "site.json"
MAX_BYTES = 64 << 20  # maximum size of site.json; a round with a few hundred implementations takes a few MiB
NAME_CHARACTERS = 200  # maximum length of an encoded name without the hash; file systems allow 255 bytes
# Also matches an empty string, which means that the address is unknown.
ADDRESS = r"(https?://[A-Za-z0-9.-]+(:\d{1,5})?(/[A-Za-z0-9._~/-]*)?)?"


class SiteRow(Record):
    """An implementation's row in a table, with the standing by each metric."""

    implementation: str
    cpu: Standing | None = None
    throughput: Standing | None = None  # None for scenarios, because tfb sets their arrival rate
    reason: str = ""  # why the row is not ranked


class SiteTable(Record):
    """The headline table of a test type, or the table of overall scores."""

    test_type: str  # name of the test type, or "overall"
    rows: tuple[SiteRow, ...]  # best first

    def ranked(self, quantity: Quantity) -> int:
        """Return how many rows have a rank by the given metric."""
        return sum(standing_of(row, quantity) is not None for row in self.rows)


class PublishedRun(Record):
    """A run in a published round."""

    run_id: str
    title: str
    lead: str
    figures: str = ""
    measured_at: EpochSeconds
    machine: str  # host, CPU model and CPU count; results from different machines are not comparable
    facts: dict[str, str]  # implementation -> facts such as language and platform
    leading: Quantity
    reference: str | None = None
    ranked: bool = True  # whether the profile ranks implementations
    tables: tuple[SiteTable, ...]


class SiteRound(Record):
    """A set of runs that were published together. A run's page never changes after publication."""

    name: str
    slug: str
    published_at: EpochSeconds
    runs: tuple[PublishedRun, ...]


class Site(Record):
    """The content of ``site.json``."""

    url: str = Field(default="", pattern=rf"^{ADDRESS}$")  # public address of the site, or empty if unknown
    rounds: tuple[SiteRound, ...] = ()  # in chronological order

    @property
    def facts(self) -> dict[str, str]:
        """Return the facts about each implementation from the newest run that contains it."""
        return {name: text for round_ in self.rounds for run in round_.runs for name, text in run.facts.items()}

    def results(self) -> "Iterator[SiteResult]":
        """Yield every table row with the round, run and table, oldest round first."""
        for site_round in self.rounds:
            for run in site_round.runs:
                for table in run.tables:
                    for row in table.rows:
                        yield site_round, run, table, row


SiteResult = tuple[SiteRound, PublishedRun, SiteTable, SiteRow]


def standing_of(row: SiteRow, quantity: Quantity) -> Standing | None:
    """Return a row's standing for a metric."""
    return row.cpu if quantity == "cpu" else row.throughput


def read_site(folder: Path) -> Site:
    """Return the site in a folder, or an empty site if site.json is missing. Raises StoreError for an invalid file."""
    path = folder / FILE
    try:
        return Site.model_validate_json(safe_read.require_bounded_json(safe_read.read(path, MAX_BYTES)))
    except FileNotFoundError:
        return Site()
    except ValueError as error:
        raise StoreError(f"{path} is not valid: {first_error(error)}. Restore it, or choose another folder") from error
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror}") from error


def summarize_run(run: DashboardRun) -> PublishedRun:
    """Convert a run to the record that ``site.json`` stores."""
    document, machine = run.document(), run.info.machine
    ranking = document.ranking
    scores = [
        SiteRow(implementation=each.implementation, cpu=_slim(each.cpu), throughput=_slim(each.throughput))
        for each in ranking.overall
    ]
    tables = {OVERALL: scores} if scores else {}
    for kind, test in ranking.test_types.items():
        tables[kind] = [
            SiteRow(
                implementation=row.implementation,
                cpu=_slim(row.cpu_per_request),
                throughput=None if isinstance(row.load, Scenario) else _slim(row.throughput),
                reason=row.reason,
            )
            for row in test.headline.rows
        ]
    return PublishedRun(
        run_id=run.info.run_id,
        title=document.title,
        lead=next(iter(document.summary), ""),
        figures=next(iter(document.summary[1:]), ""),
        measured_at=run.info.started_at,
        machine=f"{machine.hostname}, {' '.join(machine.cpu_model.split())}, {machine.cpus_online} CPUs",
        facts={info.name: _facts(info) for info in run.info.implementations},
        leading=ranking.leading,
        reference=ranking.reference,
        ranked=is_ranked(run.info),
        tables=tuple(
            SiteTable(test_type=kind, rows=tuple(sort_by_position(rows, lambda row: standing_of(row, ranking.leading))))
            for kind, rows in tables.items()
        ),
    )


def _slim(standing: Standing | None) -> Standing | None:
    """Return a copy of a standing without the ratio to the best row and the values of individual processes."""
    return standing and standing.model_copy(
        update={"estimate": standing.estimate.model_copy(update={"values": ()}), "to_best": None}
    )


def _facts(info: ImplementationInfo) -> str:
    """Format facts about an implementation, for example ``Java · Vert.x · Micro``."""
    facts = (info.language, info.platform, info.classification, info.database, info.orm)
    return " · ".join(fact for fact in facts if fact and fact.lower() != "none")


# ---- paths within the site; names are sanitised, because site.json is untrusted --------------------------


def make_slug(name: str) -> str:
    """Convert a round's name to a URL slug. Return an empty string if the name has no letters or digits."""
    return re.sub(r"[^a-z0-9._-]+", "-", name.lower()).strip("-.")[:60]


def encode_name(name: str) -> str:
    """Encode a name as a safe file or folder name. Long names are truncated and end in a hash."""
    encoded = quote(name, safe="").replace(".", "%2E") if not name.strip(".") else quote(name, safe="")
    # The name "index" is reserved for the list of implementations.
    if len(encoded) > NAME_CHARACTERS or encoded == "index":
        encoded = f"{encoded[:NAME_CHARACTERS]}-{sha256(name.encode()).hexdigest()[:16]}"
    return encoded


def run_path(site_round: SiteRound, run_id: str) -> str:
    """Return the path of a run's page."""
    return f"rounds/{make_slug(site_round.slug)}/{encode_name(run_id)}.html"


def preview_path(site_round: SiteRound, run_id: str) -> str:
    """Return the path of a run's link-preview image."""
    return f"{run_path(site_round, run_id).removesuffix('.html')}.png"


def implementation_path(name: str) -> str:
    """Return the path of an implementation's page."""
    return f"implementations/{encode_name(name)}.html"


def badge_path(name: str, test_type: str, suffix: str) -> str:
    """Return the path of a badge; ``suffix`` is "svg" or "json"."""
    return f"badges/{encode_name(test_type)}/{encode_name(name)}.{suffix}"
