"""The commit-msg hook accepts only imperative subjects of at most 72 characters."""

import subprocess
from pathlib import Path

import pytest

from harness.paths import REPOSITORY

HOOK = REPOSITORY / ".ci" / "commit-subject"


def checked(message: str, folder: Path) -> subprocess.CompletedProcess[str]:
    file = folder / "message"
    file.write_text(message, encoding="utf-8")
    return subprocess.run([HOOK, file], check=False, capture_output=True, text=True)


@pytest.mark.parametrize(
    "subject",
    ["Add a test", "Process each row once", "Embed the page", "Bring back the flag", f"Fix {'x' * 68}"],
)
def test_an_imperative_subject_passes(subject: str, tmp_path: Path) -> None:
    assert checked(f"{subject}\n\nThe reason, added later.\n", tmp_path).returncode == 0


@pytest.mark.parametrize(
    ("subject", "fault"),
    [
        ("Adds a test", 'not with "adds"'),
        ("Fixed the build", 'not with "fixed"'),
        ("Renaming modules", 'not with "renaming"'),
        ("add a test", "capital letter"),
        ("Add a test.", "full stop"),
        (f"Fix {'x' * 69}", "has 73 characters; at most 72"),
        ("", "capital letter"),
    ],
)
def test_another_subject_fails_with_the_reason(subject: str, fault: str, tmp_path: Path) -> None:
    done = checked(f"{subject}\n", tmp_path)
    assert done.returncode == 1
    assert fault in done.stderr


def test_messages_written_by_git_pass(tmp_path: Path) -> None:
    assert checked(f"Merge branch '{'x' * 80}'\n", tmp_path).returncode == 0
