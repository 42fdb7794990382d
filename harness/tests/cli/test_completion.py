"""Shell completion, which gets names from ``./tfb``."""

import subprocess
import sys
from pathlib import Path

import pytest

from harness import cli
from harness.paths import REPOSITORY
from harness.tests.scene import script


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("run vertx-w", "vertx-web"),
        ("run --profile sta", "standard"),
        ("verify --exclude ex", "express"),
        ("run --type cached", "cached-query"),
        ("run --test-lang Ja", "JavaScript"),
        ("new mine --language G", "Go"),
    ],
)
def test_names_are_completed(line: str, offered: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["__complete", *line.split()]) == 0
    assert offered in [record.split("\t")[0] for record in capsys.readouterr().out.splitlines()]


def test_bash_completes_verbs_and_names(tmp_path: Path) -> None:
    script(tmp_path / "tfb", f'PYTHONPATH={REPOSITORY} exec {sys.executable} -m harness "$@"')
    bash_script = (
        'COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); COMP_LINE="${COMP_WORDS[*]}"; COMP_POINT=${#COMP_LINE}; '
        "word=${COMP_WORDS[COMP_CWORD]}; $(complete -p tfb | sed 's/.*-F \\([^ ]*\\).*/\\1/') tfb \"$word\" run; "
        'echo "${COMPREPLY[@]}"'
    )
    code = 'eval "$(./tfb --completion bash)"'
    code += "".join(f"; COMP_WORDS=(./tfb {line}); {bash_script}" for line in ("ver", "run es4"))
    completed = subprocess.run(["bash", "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (completed.stdout.splitlines(), completed.stderr) == (["verify", "es4x"], "")
