"""What a site remembers of its rounds, in ``site.json.gz``: a later round is added to those before. Pure models."""

import gzip
import re
import zlib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from pydantic import ValidationError

from harness.dashboard.documents import HistoryPoint
from harness.errors import StoreError
from harness.records import bounded
from harness.records.models import Record

FILE = "site.json.gz"
MOST_BYTES = 64 << 20  # unpacked; a round of some hundred implementations takes less than one


class PublishedRun(Record):
    """One run of a round."""

    run_id: str
    machine: str
    lead: str
    facts: dict[str, str]  # implementation -> language, platform and so on
    points: tuple[tuple[str, HistoryPoint], ...]  # implementation and its figures of a test type


class Round(Record):
    """A set of runs published together. Its pages never change once they are published."""

    name: str
    slug: str
    published_at: float
    runs: tuple[PublishedRun, ...]


class Site(Record):
    """Everything that the pages are made from."""

    rounds: tuple[Round, ...] = ()  # oldest first

    @property
    def slugs(self) -> dict[str, str]:
        """Implementation -> its part of an address; it keeps the one that it had first."""
        found: dict[str, str] = {}
        for name in (name for one in self.rounds for run in one.runs for name in run.facts):
            base = re.sub(r"[^a-z0-9._-]+", "-", name.lower()).strip("-.")[:60] or "implementation"
            number = 1
            while name not in found:
                slug = base if number == 1 else f"{base}-{number}"
                if slug not in found.values():
                    found[name] = slug
                number += 1
        return dict(sorted(found.items()))

    @property
    def history(self) -> dict[str, list[tuple[Round, HistoryPoint]]]:
        """Implementation -> its figures with their rounds, oldest first."""
        found: defaultdict[str, list[tuple[Round, HistoryPoint]]] = defaultdict(list)
        for one, (name, point) in self._points():
            found[name].append((one, point))
        return found

    def _points(self) -> Iterator[tuple[Round, tuple[str, HistoryPoint]]]:
        return ((one, point) for one in self.rounds for run in one.runs for point in run.points)


def slug_of(name: str) -> str:
    """A round's name as a part of an address. Raises StoreError for one without a letter or digit."""
    slug = re.sub(r"[^a-z0-9._-]+", "-", name.lower()).strip("-.")[:80]
    if not slug:
        raise StoreError(f"{name!r}: a round's name needs a letter or a digit")
    return slug


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
    except ValidationError as error:
        raise StoreError(f"{path}: not a site of this program: {error.errors()[0]['msg']}") from error
    except (gzip.BadGzipFile, EOFError, zlib.error, ValueError) as error:
        raise StoreError(f"{path}: not a site of this program: {error}") from error
    except OSError as error:
        raise StoreError(f"{path}: cannot be read: {error.strerror}") from error
