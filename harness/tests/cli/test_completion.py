"""What a shell offers on Tab: its function asks ./tfb itself for names."""

import pytest

from harness import cli


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("run vertx-w", "vertx-web"),
        ("verify --exclude ex", "express"),
        ("run --type cached", "cached-query"),
        ("run --profile sta", "standard"),
        ("run --test-lang Ja", "JavaScript"),
        ("list --tag co", "core"),
        ("new mine --language G", "Go"),
    ],
)
def test_names_are_offered(line: str, offered: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["__complete", *line.split()]) == 0
    assert offered in [record.split("\t")[0] for record in capsys.readouterr().out.splitlines()]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_its_function_with_every_verb(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--completion", shell]) == 0
    text = capsys.readouterr().out
    assert [verb for verb in ("run", "verify", "report", "dashboard", "claims") if verb not in text] == []
    assert "__complete" in text
