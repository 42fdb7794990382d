"""Writes a round into a folder: its pages, those of the implementations, and what the next round needs to know."""

import gzip
import shutil
from collections.abc import Sequence
from pathlib import Path

from pydantic import ValidationError

from harness.dashboard.build import ensure_built
from harness.dashboard.documents import Embedded, HistoryPoint, RunDocument
from harness.dashboard.history import history_points
from harness.dashboard.runs import Run
from harness.dashboard.source import source_base
from harness.dashboard.titles import machine_of
from harness.errors import StoreError
from harness.records import bounded
from harness.records.models import ImplementationInfo
from harness.report.html import packed
from harness.report.sentence import sentences
from harness.site import pages
from harness.site.rounds import FILE, Claim, PublishedRun, Round, Site, read, slug_of, with_round

CLAIMS = "claims.json"  # of a run's folder, where its claims were judged
WHOLE_CELLS = 400  # implementation x test type of a run that are published with their levels


def publish(runs: Sequence[Path], output: Path, *, name: str, published_at: float) -> Site:
    """Add a round of these runs to the site in ``output``. Raises StoreError."""
    site = read(output)
    if output.exists() and any(output.iterdir()) and not (output / FILE).exists():
        raise StoreError(f"{output}: holds other files than a site: choose an empty folder")
    opened = [Run(folder) for folder in runs]
    wholes = [embedded_of(run) for run in opened]
    documents = [whole.document for whole in wholes]
    one = Round(
        name=name,
        slug=slug_of(name),
        published_at=published_at,
        runs=tuple(published(document, claims_of(run.folder)) for run, document in zip(opened, documents, strict=True)),
    )
    site = with_round(site, one, members_of(documents))
    try:
        write(site, one, wholes, output, ensure_built())
    except OSError as error:
        raise StoreError(f"{output}: cannot be written: {error.strerror}") from error
    return site


def embedded_of(run: Run) -> Embedded:
    """A run's ranking, with the levels while they are few; samples and logs stay in results/."""
    ranking = run.ranking()
    headlines = {kind: test.model_copy(update={"levels": ()}) for kind, test in ranking.test_types.items()}
    slim = ranking.model_copy(update={"test_types": headlines})
    document = run.document(slim, source_base(), sentences)
    cells = sum(len(test.headline.rows) for test in ranking.test_types.values())
    whole = cells <= WHOLE_CELLS
    return Embedded(
        document=document,
        tests=run.tests(ranking) if whole else {},
        latency=run.latency() if whole else {},
        cells=(),
        logs={},
        left_out=("Samples, logs and checks stay with the run's own folder.",),
    )


def published(document: RunDocument, claims: tuple[Claim, ...]) -> PublishedRun:
    """What the site remembers of a run."""
    first = next(iter(document.sentences.values()), {})
    return PublishedRun(
        run_id=document.run.run_id,
        title=document.title,
        started_at=document.run.started_at,
        machine=machine_of(document.run),
        profile=document.run.profile,
        lead=next(iter(first.get("throughput", ())), ""),
        claims=claims,
    )


def claims_of(folder: Path) -> tuple[Claim, ...]:
    """The claims that a run judged; none without claims.json. Raises StoreError for a broken one."""
    path = folder / CLAIMS
    try:
        return pages.claims_from(bounded.text(path))
    except FileNotFoundError:
        return ()
    except (OSError, ValueError, ValidationError) as error:
        raise StoreError(f"{path}: not a list of claims: {error}") from error


def members_of(documents: Sequence[RunDocument]) -> dict[str, tuple[ImplementationInfo, list[HistoryPoint]]]:
    """Every implementation of these runs with its figures; single values of replicates are not kept."""
    found: dict[str, tuple[ImplementationInfo, list[HistoryPoint]]] = {}
    for document in documents:
        points: dict[str, list[HistoryPoint]] = {}
        for name, point in history_points(document):
            points.setdefault(name, []).append(without_values(point))
        for info in document.run.implementations:
            slim = info.model_copy(update={"build": None})
            found.setdefault(info.name, (slim, []))[1].extend(points.get(info.name, ()))
    return found


def without_values(point: HistoryPoint) -> HistoryPoint:
    """The same with estimates alone."""
    slim = {
        key: estimate.model_copy(update={"values": ()})
        for key in ("throughput", "cpu_per_request")
        if (estimate := getattr(point, key)) is not None
    }
    return point.model_copy(update=slim)


def write(site: Site, one: Round, wholes: Sequence[Embedded], output: Path, web: Path) -> None:
    """All files: those of the new round, and those that list or continue what was there."""
    assets = output / "assets"
    assets.mkdir(parents=True, exist_ok=True)
    script, style = (next((web / "assets").glob(pattern)) for pattern in ("*.js", "*.css"))
    for asset in (script, style):
        shutil.copyfile(asset, assets / asset.name)
    folder = output / "rounds" / one.slug
    folder.mkdir(parents=True)
    for whole in wholes:
        text = pages.run_page(whole.document.title, packed(whole), style=style.name, script=script.name)
        (folder / f"{whole.document.run.run_id}.html").write_text(text, encoding="utf-8")
    documents = [whole.document for whole in wholes]
    (folder / "index.html").write_text(pages.round_page(one, documents, style.name), encoding="utf-8")
    members = output / "implementations"
    members.mkdir(exist_ok=True)
    for member in site.members:
        (members / f"{member.slug}.html").write_text(pages.member_page(member, site, style.name), encoding="utf-8")
    (members / "index.html").write_text(pages.members_page(site, style.name), encoding="utf-8")
    (output / "index.html").write_text(pages.front(site, style.name), encoding="utf-8")
    (output / FILE).write_bytes(gzip.compress(site.model_dump_json().encode(), mtime=0))
