"""How large an implementation is: lines of its program that are neither blank, nor comment, nor import.

What is a comment is told by Pygments' lexers, not by how a line begins. Templates, configuration and build files are no
lines of the program, tests and what a build or a package manager has put there neither.
"""

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name
from pygments.token import Comment, String, Whitespace
from pygments.util import ClassNotFound

from harness.records import bounded

# Pygments' name of a language -> what its files end in.
ENDINGS = {
    "java": ".java", "kotlin": ".kt", "scala": ".scala", "groovy": ".groovy", "clojure": ".clj",
    "javascript": ".js .mjs .cjs", "typescript": ".ts", "python": ".py", "go": ".go", "rust": ".rs", "ruby": ".rb",
    "php": ".php", "elixir": ".ex .exs", "c": ".c .h", "cpp": ".cc .cpp .hpp", "csharp": ".cs", "fsharp": ".fs",
    "swift": ".swift", "dart": ".dart", "haskell": ".hs", "lua": ".lua", "nim": ".nim", "zig": ".zig", "crystal": ".cr",
}  # fmt: skip
LANGUAGES = {ending: language for language, endings in ENDINGS.items() for ending in endings.split()}
NOT_ITS_OWN = frozenset(("node_modules", "target", "vendor", "build", "dist", "out", "bin", "obj", "test", "tests"))
FILE_BYTES = 1 << 20
REACH = 60  # lines of one import
MOST_FILES = 2_000  # of one implementation: a folder of more is somebody's dependencies
# What begins a statement that only says where names come from; it goes on until its brackets are closed.
IMPORT = re.compile(
    r"""(package|import)\b(?!\s*\()|import\s*\(\s*$|from\s+[\w.]+\s+import\b|(pub(\([^)]*\))?\s+)?use\s+[\w:{]|extern\s+crate\b
    |(const|let|var)\s+[\w{}\s,:$]+=\s*require\(|require(_once|_relative)?\b|using\s+[\w.]+\s*;|\#\s*include\b|open\s+[A-Z]""",
    re.VERBOSE,
)


def lines(folder: Path, sources: Sequence[str] = ()) -> int | None:
    """Lines of the files below ``folder``, or of these files and folders in it; None where there is no program."""
    files = list(programs(folder, sources))
    if not files or len(files) > MOST_FILES:
        return None
    return sum(map(_lines, files))


def programs(folder: Path, sources: Sequence[str] = ()) -> Iterator[Path]:
    """Programs below the folder, each once."""
    found: dict[Path, None] = {}
    for root in [folder / source for source in sources] or [folder]:
        found |= dict.fromkeys([root] if root.is_file() else _below(root))
    for path in found:
        if path.suffix in LANGUAGES and path.is_file() and not path.is_symlink() and path.stat().st_size <= FILE_BYTES:
            yield path


def _below(root: Path) -> Iterator[Path]:
    for place, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if name not in NOT_ITS_OWN and not name.startswith("."))
        yield from (Path(place) / name for name in sorted(names))


def _lines(path: Path) -> int:
    try:
        lexer = get_lexer_by_name(LANGUAGES[path.suffix], stripnl=False, ensurenl=False)
    except ClassNotFound:
        return 0
    try:
        text = bounded.read(path, FILE_BYTES).decode("utf-8", errors="replace")
    except OSError:  # gone meanwhile, or not for this user
        return 0
    return count(text, lexer)


def count(text: str, lexer: Lexer) -> int:
    """Lines of a program with anything but white space, comments, documentation and imports."""
    whole = text.replace("\r\n", "\n").split("\n")
    return sum(1 for number in _significant(text, lexer) if not _imports(whole, number))


def _significant(text: str, lexer: Lexer) -> list[int]:
    """Numbers of the lines, from 0, that hold a token which does something."""
    found: dict[int, None] = {}
    number = 0
    for kind, value in lexer.get_tokens(text):
        parts = value.split("\n")
        told = kind in Comment and kind not in Comment.Preproc and kind not in Comment.PreprocFile
        if not (told or kind in Whitespace or kind in String.Doc):
            found |= {number + place: None for place, part in enumerate(parts) if part.strip()}
        number += len(parts) - 1
    return list(found)


def _imports(whole: Sequence[str], number: int) -> bool:
    """Whether a line is an import, or within the brackets of one that began above."""
    if IMPORT.match(whole[number].strip()):
        return True
    above = range(max(number - REACH, 0), number)
    return any(IMPORT.match(whole[first].strip()) and _open(whole[first:number]) for first in above)


def _open(part: Sequence[str]) -> bool:
    """Whether brackets that these lines open stay open to their end."""
    depth = 0
    for line in part:
        depth += sum(line.count(mark) for mark in "([{") - sum(line.count(mark) for mark in ")]}")
        if depth <= 0:
            return False
    return True
