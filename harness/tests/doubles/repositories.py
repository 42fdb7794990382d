"""Creates git repositories with hostile content or configuration, owned by any account."""

import os
import subprocess
from pathlib import Path

MALLORY = 61_999  # owner of hostile repositories: a UID without an account
TOML = '[service]\nstart = "./shop"\n[[request]]\nname = "a"\npath = "/"\n'


def git(folder: Path, *words: str, text: str = "") -> str:
    """Run git with a fixed author and return its output."""
    author = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "safe.directory=*"]
    command = ["git", *author, "-C", str(folder), *words]
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}
    completed = subprocess.run(
        command, check=True, capture_output=True, text=True, input=text, timeout=30, env=environment
    )
    return completed.stdout.strip()


def repository(folder: Path, **files: str) -> Path:
    """Create a repository and commit a tfb.toml and the given files. ``__`` in a name becomes a dot."""
    folder.mkdir(parents=True)
    for name, text in {"tfb__toml": TOML, **files}.items():
        path = folder / name.replace("__", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "first")
    return folder


def tree(folder: Path, *lines: str) -> str:
    """Commit a tree that ``git add`` would refuse, from lines for ``git mktree``. Return the commit."""
    made = git(folder, "mktree", "--missing", text="".join(f"{line}\n" for line in lines))
    return git(folder, "commit-tree", made, "-m", "odd", "-p", "HEAD")


def blob(folder: Path, text: str) -> str:
    return git(folder, "hash-object", "-w", "--stdin", text=text)


def give(folder: Path, uid: int) -> None:
    """Change the owner of a folder and of everything in it."""
    for place, folders, names in os.walk(folder):
        for name in (*folders, *names):
            os.lchown(Path(place, name), uid, uid)
    os.chown(folder, uid, uid)


def let_others_enter(folder: Path) -> None:
    """Let other accounts enter a test's folder and its parents. No permission is removed."""
    for place in (folder, *folder.parents):
        if not place.stat().st_mode & 0o001:
            place.chmod(place.stat().st_mode | 0o011)


def witness(folder: Path) -> tuple[Path, Path]:
    """Create a program that records its UID in a file. Return the program and the file."""
    program, ran = folder / "spy", folder / "ran"
    program.write_text(f'#!/bin/sh\nid -u >> "{ran}"\ncat\n', encoding="utf-8")
    program.chmod(0o755)
    folder.chmod(0o777)
    return program, ran
