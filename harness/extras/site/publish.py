"""Writes a round into a folder: its pages, those of the implementations, and what the next round needs to know."""

import gzip
import shutil
from collections.abc import Sequence
from pathlib import Path

from harness.dashboard.build import ensure_built
from harness.dashboard.documents import Embedded, HistoryPoint
from harness.dashboard.runs import Run, history_points
from harness.dashboard.source import source_base
from harness.dashboard.titles import machine_of
from harness.errors import StoreError
from harness.extras.site import pages
from harness.extras.site.rounds import FILE, PublishedRun, Round, Site, read, slug_of
from harness.records import bounded
from harness.records.models import ImplementationInfo
from harness.report.html import packed
from harness.report.sentence import sentences

CLAIMS = "claims.json"  # of a results folder: the last verdict on every claim
CLAIMS_BYTES = 16 << 20
WHOLE_CELLS = 400  # implementation x test type of a run that are published with the tables of every load


def publish(runs: Sequence[Path], output: Path, *, name: str, published_at: float) -> Site:
    """Add a round of these runs to the site in ``output``. Raises StoreError: permalinks never change."""
    site = read(output)
    if output.exists() and any(output.iterdir()) and not (output / FILE).exists():
        raise StoreError(f"{output}: holds other files than a site: choose an empty folder")
    wholes = [embedded_of(Run(folder)) for folder in runs]
    new = Round(name=name, slug=slug_of(name), published_at=published_at, runs=tuple(map(published, wholes)))
    if any(old.slug == new.slug for old in site.rounds):
        raise StoreError(f"round {name!r} is published already: choose another name with --round")
    site = Site(rounds=(*site.rounds, new))
    claims = [claims_of(folder) for folder in runs]
    try:
        write(site, wholes, claims, output, ensure_built())
    except OSError as error:
        raise StoreError(f"{output}: cannot be written: {error.strerror}") from error
    return site


def embedded_of(run: Run) -> Embedded:
    """A run's ranking, with the loads while they are few; trials and logs stay in results/."""
    ranking = run.ranking()
    headlines = {kind: test.model_copy(update={"tables": ()}) for kind, test in ranking.test_types.items()}
    slim = ranking.model_copy(update={"test_types": headlines})
    whole = sum(len(test.headline.rows) for test in headlines.values()) <= WHOLE_CELLS
    return Embedded(
        document=run.document(slim, source_base(), sentences),
        tests=run.tests(ranking) if whole else {},
        latency=run.latency() if whole else {},
        cells=(),
        logs={},
        left_out=("Trials, logs and checks stay with the run's own folder.",),
    )


def published(whole: Embedded) -> PublishedRun:
    """What the site remembers of a run; single values of processes are not kept."""
    document = whole.document
    leading = next(iter(document.sentences.values()), {}).get(document.ranking.leading, ())
    return PublishedRun(
        run_id=document.run.run_id,
        machine=machine_of(document.run),
        lead=next(iter(leading), ""),
        facts={info.name: facts_of(info) for info in document.run.implementations},
        points=tuple((name, slim(point)) for name, point in history_points(document.run, document.ranking)),
    )


def facts_of(info: ImplementationInfo) -> str:
    """``Java · Vert.x · Micro``."""
    facts = (info.language, info.platform, info.classification, info.database, info.orm)
    return " · ".join(fact for fact in facts if fact and fact.lower() != "none")


def slim(point: HistoryPoint) -> HistoryPoint:
    """The same with estimates alone."""
    found = {"throughput": point.throughput, "cpu_per_request": point.cpu_per_request}
    return point.model_copy(
        update={name: each and each.model_copy(update={"values": ()}) for name, each in found.items()}
    )


def claims_of(run: Path) -> list[tuple[str, ...]]:
    """The statements that a run judged; none without a claims.json beside it. Raises StoreError for a broken one."""
    path = run.parent / CLAIMS
    try:
        return pages.claims_of(bounded.parse(bounded.read(path, CLAIMS_BYTES)), run.name)
    except FileNotFoundError:
        return []
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise StoreError(f"{path}: not the verdicts on claims: {error!r}") from error


def write(
    site: Site, wholes: Sequence[Embedded], claims: Sequence[list[tuple[str, ...]]], output: Path, web: Path
) -> None:
    """All files: those of the newest round, and those that list or continue what was there."""
    script, style = (next((web / "assets").glob(pattern)) for pattern in ("*.js", "*.css"))
    (output / "assets").mkdir(parents=True, exist_ok=True)
    for asset in (script, style):
        shutil.copyfile(asset, output / "assets" / asset.name)
    new = site.rounds[-1]
    files = {
        f"rounds/{new.slug}/{whole.document.run.run_id}.html": pages.run_page(
            whole.document.title, packed(whole), style=style.name, script=script.name
        )
        for whole in wholes
    }
    documents = [whole.document for whole in wholes]
    files[f"rounds/{new.slug}/index.html"] = pages.round_page(new, documents, claims, style.name)
    facts = {name: told for one in site.rounds for run in one.runs for name, told in run.facts.items()}
    history = site.history
    for name, slug in site.slugs.items():
        files[f"implementations/{slug}.html"] = pages.member_page(name, facts[name], history.get(name, []), style.name)
    files["implementations/index.html"] = pages.members_page(site, style.name)
    files["index.html"] = pages.front(site, style.name)
    for name, text in files.items():
        (output / name).parent.mkdir(parents=True, exist_ok=True)
        (output / name).write_text(text, encoding="utf-8")
    (output / FILE).write_bytes(gzip.compress(site.model_dump_json().encode(), mtime=0))
