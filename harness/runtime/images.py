"""Records the images that tfb builds and tags. tfb removes only recorded tags.

A label does not prove that tfb built an image, because images built FROM a tfb image inherit the labels. The state
folder therefore contains a record of each tag with the image id.
"""

import fcntl
import json
import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from harness.host import ownership
from harness.paths import state_folder
from harness.runtime.compose import IMAGE_LABEL, docker, inspect

logger = logging.getLogger("tfb.images")

RECORD = "images.jsonl"  # name of the record in the state folder
MAX_RECORD_BYTES = 8 << 20  # maximum size of the record
RUN_TAG = ":run-"  # precedes the run's token in temporary tags


@dataclass(frozen=True, kw_only=True)
class OwnImage:
    """An image that tfb tagged. ``name`` is the tag, or the image id if the tag no longer names this image."""

    name: str
    description: str
    bytes: int


@dataclass(frozen=True, kw_only=True)
class _Entry:
    tag: str
    id: str
    owner: str
    temporary: bool  # whether the tag is removed when the owning process exits


def is_foreign(tag: str) -> bool:
    """Return whether a tag names an image that tfb did not build. A build must not move such a tag."""
    image = inspect("image", tag)
    labels = ((image or {}).get("Config") or {}).get("Labels") or {}
    return image is not None and labels.get(IMAGE_LABEL) != tag


def record_tag(tag: str, identity: str, *, temporary: bool = False) -> None:
    """Record that this process tagged an image. A ``temporary`` tag is removed when the process exits."""
    full_tag = tag if ":" in tag.rpartition("/")[2] else f"{tag}:latest"
    entry = _Entry(tag=full_tag, id=identity, owner=ownership.own_identity(), temporary=temporary)
    try:
        with _record() as file:
            if all((each.tag, each.id) != (entry.tag, entry.id) for each in _entries(file)):
                file.seek(0, os.SEEK_END)
                file.write(json.dumps(vars(entry)) + "\n")
    except OSError as error:
        logger.warning("cannot record the image %s, so ./tfb clean will not remove it: %s", tag, error)


def own_images(engine: Sequence[str] = ()) -> list[OwnImage]:
    """Return the images that tfb tagged, except temporary tags that belong to running processes."""
    images: dict[str, OwnImage] = {}
    for entry in _recorded():
        if entry.temporary and ownership.owner_state(entry.owner) == "alive":
            continue
        image = inspect("image", entry.tag, engine)
        if image and image["Id"] == entry.id:
            images[entry.tag] = _own(entry.tag, entry.tag, image)
        elif (image := inspect("image", entry.id, engine)) and not image.get("RepoTags"):
            images[entry.id] = _own(entry.id, f"{entry.id[7:19]}, was {entry.tag}", image)
    return list(images.values())


def _own(name: str, description: str, image: dict[str, Any]) -> OwnImage:
    return OwnImage(name=name, description=description, bytes=int(image.get("Size") or 0))


def remove_images(names: Sequence[str], at: Sequence[str] = ()) -> list[tuple[str, str]]:
    """Remove images by tag or id. Return (tag or id, reason) for each image that cannot be removed.

    Removing the last tag deletes the image. The engine refuses this if a container uses the image.
    """
    remaining = []
    for name in names:
        done = docker("image", "rm", "--no-prune", name, seconds=120.0, at=at)
        if done.status != 0 and "No such image" not in done.stdout:
            remaining.append((name, done.stdout.strip().splitlines()[-1] if done.stdout.strip() else "no reason given"))
    return remaining


def remove_tag(tag: str, identity: str) -> list[tuple[str, str]]:
    """Remove a tag if it still refers to the image with the id ``identity``.

    Return ``[(tag, reason)]`` if the removal fails, otherwise an empty list.
    """
    image = inspect("image", tag)
    return remove_images([tag]) if image and image["Id"] == identity else []


def forget_removed() -> None:
    """Delete the records of images that this machine's engine no longer has."""
    try:
        with _record() as file:
            existing = [entry for entry in _entries(file) if inspect("image", entry.id)]
            file.seek(0)
            file.truncate()
            file.writelines(json.dumps(vars(entry)) + "\n" for entry in existing)
    except OSError as error:
        logger.warning("cannot delete the records of removed images: %s", error)


def image_digest(name: str) -> str:
    """Return an image's digest in the registry or, for a local image, the image id. Both start with ``sha256:``."""
    image = inspect("image", name) or {}
    registry_digests = [word.partition("@")[2] for word in image.get("RepoDigests") or ()]
    return str(registry_digests[0] if registry_digests else image.get("Id", ""))


def _recorded() -> list[_Entry]:
    try:
        with _record() as file:
            return _entries(file)
    except OSError:
        return []


@contextmanager
def _record() -> Iterator[IO[str]]:
    """Lock the record and open it for reading and writing."""
    folder: Path = state_folder()
    folder.mkdir(parents=True, exist_ok=True)
    number = os.open(folder / RECORD, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
    with os.fdopen(number, "r+", encoding="utf-8", errors="replace") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield file


def _entries(file: IO[str]) -> list[_Entry]:
    """Parse the record, one entry per line. Skip damaged lines."""
    file.seek(0)
    entries = []
    for line in file.read(MAX_RECORD_BYTES).splitlines():
        try:
            document = json.loads(line)
            texts = {key: str(document[key]) for key in ("tag", "id", "owner")}
        except (ValueError, KeyError, TypeError):
            continue
        if texts["id"].startswith("sha256:") and texts["tag"][:1].isalnum():
            entries.append(_Entry(**texts, temporary=document.get("temporary") is True))
    return entries
