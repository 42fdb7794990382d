"""Creates and changes a folder with 20 static files like those of a web page. Text files have compressed variants."""

import gzip
import os
import random
import secrets
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import brotli

from harness.errors import LoadError

VARIABLE, FOLDER = "STATIC_DIR", "static"
SECRET_FILE = "secret.txt"  # noqa: S105 - a file next to the folder; no server may send this file
FOLLOW_SECONDS = 1.0  # a server may send the previous content for this long after a change
CHANGE_INTERVAL = (0.2, 0.6)  # bounds of the random time between two changes during a load, in seconds
CHANGED_FILES = 3  # number of files that change during a load
MAX_CHANGED_BYTES = 25_000  # larger files do not change, because their compression takes longer
ALTERNATIVES = 2  # number of versions prepared for each file that changes
TOKEN_BYTES = 16  # length of the random token at the start of a text file; a change replaces the token
MAX_ATTEMPTS = 2_000
MODIFIED_AT = 1_704_164_645  # Tue, 02 Jan 2024; the one-digit day reveals servers that send "2 Jan" without a zero
SIZES = {  # name -> bytes
    "base.css": 9_000,
    "forms.css": 21_000,
    "grid.css": 38_000,
    "print.css": 12_000,
    "theme.css": 180_000,
    "app.js": 130_000,
    "charts.js": 90_000,
    "forms.js": 26_000,
    "runtime.js": 14_000,
    "vendor.js": 300_000,
    "about.html": 56_000,
    "shop.html": 115_000,
    "icons.svg": 68_000,
    "logo.svg": 16_000,
    "catalog.json": 3_000,
    "text.woff2": 19_000,
    "title.woff2": 23_000,
    "photo.webp": 45_000,
    "small.webp": 6_000,
    "wide.webp": 33_000,
}
MEDIA_TYPES: Mapping[str, Sequence[str]] = {
    "css": ("text/css",),
    "html": ("text/html",),
    "js": ("text/javascript", "application/javascript"),
    "json": ("application/json",),
    "svg": ("image/svg+xml",),
    "webp": ("image/webp",),
    "woff2": ("font/woff2",),
}
BINARY = ("webp", "woff2")
WORDS = ("margin", "width", "return", "color", "item", "function", "class", "value", "const", "button", "path", "fill")


@dataclass(frozen=True, kw_only=True)
class FileVersion:
    """A file's content, and when a server may send it: from ``since`` to ``until``, in epoch seconds."""

    content: bytes
    since: float = float("-inf")
    until: float = float("inf")


Versions = dict[str, list[FileVersion]]


def extension(name: str) -> str:
    """Return a file name's extension without the dot."""
    return name.rpartition(".")[2]


def make_content(name: str, size: int, dice: random.Random) -> bytes:
    """Generate random bytes for an image or a font, or random words for a text file."""
    if extension(name) in BINARY:
        return dice.randbytes(size)
    words = (f"{dice.choice(WORDS)}-{dice.randint(1, 400)}" for _ in range(size // 6))
    return _token(dice) + " ".join(words).encode()[: size - TOKEN_BYTES]


def _token(dice: random.Random) -> bytes:
    return f"{dice.getrandbits(4 * TOKEN_BYTES):0{TOKEN_BYTES}x}".encode()


def variants(name: str, content: bytes) -> dict[str, bytes]:
    """Return the variants of a file, keyed by suffix: "" for the original and, for a text file, ".gz" and ".br"."""
    if extension(name) in BINARY:
        return {"": content}
    return {"": content, ".gz": gzip.compress(content), ".br": brotli.compress(content, quality=5)}


def make_alternative(name: str, content: bytes, dice: random.Random) -> dict[str, bytes]:
    """Generate new variants with the sizes of the old variants. If this fails, return the old variants.

    Many servers read a file's size before they open the file. If the size changed in between, these servers would send
    incomplete responses, although they are otherwise correct.
    """
    if extension(name) in BINARY:
        return variants(name, dice.randbytes(len(content)))
    sizes = {suffix: len(data) for suffix, data in variants(name, content).items()}
    for _ in range(MAX_ATTEMPTS):
        found = variants(name, _token(dice) + content[TOKEN_BYTES:])
        if {suffix: len(data) for suffix, data in found.items()} == sizes:
            return found
    return variants(name, content)


def write_variants(folder: Path, name: str, contents: Mapping[str, bytes]) -> None:
    """Replace a file and its compressed variants. Each file is replaced atomically."""
    new = {suffix: folder.parent / f"new-{name}{suffix}" for suffix in contents}
    for suffix, data in contents.items():
        new[suffix].write_bytes(data)
        new[suffix].chmod(0o644)
    for suffix, file in new.items():
        os.replace(file, folder / f"{name}{suffix}")  # noqa: PTH105 - Path.replace does the same


def write_static_folder(folder: Path) -> Mapping[str, str]:
    """Create a subfolder with random files. Return a mapping from environment variable to the subfolder's name."""
    dice = random.Random(secrets.randbits(63))
    static = folder / FOLDER
    static.mkdir()
    for name, size in SIZES.items():
        contents = variants(name, make_content(name, size, dice))
        write_variants(static, name, contents)
        for suffix in contents:
            os.utime(static / f"{name}{suffix}", (MODIFIED_AT, MODIFIED_AT))
    (folder / SECRET_FILE).write_text(secrets.token_hex(32), encoding="ascii")
    return {VARIABLE: FOLDER}


def read_versions(folder: Path) -> Versions:
    """Return the current content of each file."""
    return {name: [FileVersion(content=(folder / name).read_bytes())] for name in SIZES}


def settle(folder: Path) -> None:
    """Wait until ``FOLLOW_SECONDS`` have passed since the last change, so that servers must send the new content."""
    newest = max((folder / name).stat().st_ctime for name in SIZES)
    time.sleep(max(0.0, newest + FOLLOW_SECONDS + 0.1 - time.time()))


def change_file(folder: Path, name: str, contents: Mapping[str, bytes], versions: Versions) -> None:
    """Replace a file and its compressed variants, and record the new version in ``versions``."""
    since = time.time()
    write_variants(folder, name, contents)
    versions[name][-1] = replace(versions[name][-1], until=time.time() + FOLLOW_SECONDS)
    versions[name].append(FileVersion(content=contents[""], since=since))


def changing_files(seed: int) -> Sequence[str]:
    """Return the names of the files that change during a load with this seed."""
    names = [name for name, size in SIZES.items() if size <= MAX_CHANGED_BYTES]
    return random.Random(f"changing {seed}").sample(names, CHANGED_FILES)


@contextmanager
def changes(folder: Path, versions: Versions, seed: int) -> Iterator[None]:
    """Change files at random times while the context is active."""
    stop, dice = threading.Event(), random.Random(seed)
    prepared = [
        (name, make_alternative(name, versions[name][0].content, dice))
        for _ in range(ALTERNATIVES)
        for name in changing_files(seed)
    ]

    errors: list[OSError] = []

    def run() -> None:
        try:
            while not stop.wait(dice.uniform(*CHANGE_INTERVAL)):
                change_file(folder, *dice.choice(prepared), versions)
        except OSError as error:
            errors.append(error)

    thread = threading.Thread(target=run, name="static files", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
    if errors:
        raise LoadError(f"a static file could not be changed: {errors[0]}. Free up space in {folder}") from errors[0]
