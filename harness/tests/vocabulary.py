"""Extracts texts and names from the product's Python code for style tests."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from harness.paths import REPOSITORY

PRODUCT = (
    "hatch_build.py",
    "harness/*.py",
    "harness/[!t]*/**/*.py",  # all packages except the tests
    "toolset/**/*.py",
    "config/**/*.py",
    "docker/**/*.py",
)
GENERATED = {"node_modules", "services", "target", "built", "dist"}  # folders to skip; services are separate programs
Kind = Literal["docstring", "comment", "message", "name"]
DIRECTIVE = re.compile(r"#\s*(noqa|type:|fmt:|pragma)")


@dataclass(frozen=True, kw_only=True)
class Text:
    """A text or name, and where it was found."""

    path: str
    line: int
    kind: Kind
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}"


def product_files() -> list[Path]:
    """Return the product's Python files."""
    files = {path for pattern in PRODUCT for path in REPOSITORY.glob(pattern)}
    return sorted(path for path in files if not GENERATED & set(path.relative_to(REPOSITORY).parts))


def texts(path: Path) -> Iterator[Text]:
    """Yield a file's docstrings, comments, messages and defined names.

    A message is a string literal of at least two words that is not a docstring. Values in f-strings become ``{}``.
    """
    source = path.read_text(encoding="utf-8")
    name = path.relative_to(REPOSITORY).as_posix()
    tree = ast.parse(source)
    parts: set[int] = set()  # ids of constants inside docstrings and f-strings
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            docstring = ast.get_docstring(node)
            if docstring is not None and isinstance(node.body[0], ast.Expr):
                parts.add(id(node.body[0].value))
                yield Text(path=name, line=node.body[0].lineno, kind="docstring", text=docstring)
        if isinstance(node, ast.JoinedStr):
            parts.update(id(part) for part in ast.walk(node) if part is not node)
    for node in ast.walk(tree):
        if id(node) not in parts and (message := _message(node)) and re.search(r"\w\s+\w", message):
            yield Text(path=name, line=getattr(node, "lineno", 1), kind="message", text=message)
        for defined in _defined_names(node):
            yield Text(path=name, line=getattr(node, "lineno", 1), kind="name", text=defined)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and not DIRECTIVE.match(token.string):
            yield Text(path=name, line=token.start[0], kind="comment", text=token.string.lstrip("#! -"))


def _message(node: ast.AST) -> str | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(map(_part, node.values))
    return None


def _part(part: ast.expr) -> str:
    """Return the text of a part of an f-string. A value becomes ``{}``, but PROGRAM becomes ``./tfb``."""
    if isinstance(part, ast.Constant):
        return str(part.value)
    is_program = (
        isinstance(part, ast.FormattedValue) and isinstance(part.value, ast.Name) and part.value.id == "PROGRAM"
    )
    return "./tfb" if is_program else "{}"


def _defined_names(node: ast.AST) -> Iterator[str]:
    """Yield the names that a node defines for classes, functions, parameters and variables."""
    if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        yield node.name
    elif isinstance(node, ast.arg):
        yield node.arg
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id


def words(name: str) -> list[str]:
    """Return the lower-case words of a name in snake case or camel case."""
    return re.findall(r"[a-z]+|[A-Z]+(?![a-z])", re.sub(r"([A-Z])([a-z])", r"_\1\2", name).lower())
