"""What a site remembers of its rounds, in ``site.json.gz``: a later round is added to those before. Pure models."""

import gzip
import re
import zlib
from pathlib import Path

from pydantic import ValidationError

from harness.dashboard.documents import HistoryPoint
from harness.errors import StoreError
from harness.records import bounded
from harness.records.models import ImplementationInfo, Record

FILE = "site.json.gz"
MOST_BYTES = 64 << 20  # unpacked; a round of some hundred implementations takes less than one
SCHEMA_VERSION = 1


class Claim(Record):
    """A statement of a ratio or an order with its source, and how a round's runs judge it."""

    statement: str
    source: str = ""  # address of who says so
    verdict: str = ""  # "holds", "does not hold", "undecided"
    measured: str = ""  # the ratio with its interval


class PublishedRun(Record):
    """One run of a round."""

    run_id: str
    title: str
    started_at: float
    machine: str
    profile: str
    lead: str
    claims: tuple[Claim, ...] = ()


class Round(Record):
    """A set of runs published together. Its pages never change once they are published."""

    name: str
    slug: str
    published_at: float
    runs: tuple[PublishedRun, ...]


class Member(Record):
    """An implementation with all its figures over the rounds, oldest first."""

    info: ImplementationInfo
    slug: str
    rounds: tuple[str, ...]  # slug of the round of each point
    points: tuple[HistoryPoint, ...]


class Site(Record):
    """Everything that the pages are made from."""

    schema_version: int = SCHEMA_VERSION
    rounds: tuple[Round, ...] = ()  # oldest first
    members: tuple[Member, ...] = ()


def slug_of(name: str) -> str:
    """A name as a part of an address. Raises StoreError for one without a letter or digit."""
    slug = re.sub(r"[^a-z0-9._-]+", "-", name.lower()).strip("-.")[:80]
    if not slug:
        raise StoreError(f"{name!r}: a round's name needs a letter or a digit")
    return slug


def unique_slugs(names: list[str]) -> dict[str, str]:
    """A slug for each name; names that would share one are numbered."""
    taken: dict[str, str] = {}
    slugs: dict[str, str] = {}
    for name in sorted(names):
        base = re.sub(r"[^a-z0-9._-]+", "-", name.lower()).strip("-.")[:60] or "implementation"
        slug, number = base, 1
        while slug in taken:
            number += 1
            slug = f"{base}-{number}"
        taken[slug] = name
        slugs[name] = slug
    return slugs


def read(folder: Path) -> Site:
    """The site that a folder holds; an empty one where there is none. Raises StoreError for a broken site.json.gz."""
    path = folder / FILE
    try:
        with bounded.open_regular(path) as packed, gzip.open(packed) as file:
            data = file.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            raise StoreError(f"{path}: larger than {MOST_BYTES >> 20} MiB unpacked")
        return Site.model_validate_json(bounded.require_few(data))
    except FileNotFoundError:
        return Site()
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise StoreError(f"{path}: not a site of this program: {error}") from error
    except OSError as error:
        raise StoreError(f"{path}: cannot be read: {error.strerror}") from error
    except ValidationError as error:
        raise StoreError(f"{path}: not a site of this program: {error.errors()[0]['msg']}") from error
    except ValueError as error:
        raise StoreError(f"{path}: not a site of this program: {error}") from error


def with_round(site: Site, new: Round, members: dict[str, tuple[ImplementationInfo, list[HistoryPoint]]]) -> Site:
    """The site with one round more. Raises StoreError for a name that is published already: permalinks never change."""
    if any(old.slug == new.slug for old in site.rounds):
        raise StoreError(f"round {new.name!r} is published already: choose another name with --round")
    known = {member.info.name: member for member in site.members}
    slugs = {member.info.name: member.slug for member in site.members}
    fresh = unique_slugs([*slugs, *(name for name in members if name not in slugs)])
    for name, (info, points) in members.items():
        old = known.get(name)
        known[name] = Member(
            info=info,
            slug=slugs.get(name) or fresh[name],
            rounds=(*(old.rounds if old else ()), *(new.slug for _ in points)),
            points=(*(old.points if old else ()), *points),
        )
    ordered = tuple(sorted(known.values(), key=lambda member: member.info.name))
    return Site(rounds=(*site.rounds, new), members=ordered)
