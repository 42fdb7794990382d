"""What is kept of sessions, and how it is drawn: as text, and as pages that need nothing else."""

from pathlib import Path

import numpy as np
import pytest

from harness import cli
from harness.errors import Exit
from harness.extras.gate import page
from harness.tests.extras.gate.test_judge import judged, session


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """Three sessions, the last one of a head that is slower."""
    file, generator = tmp_path / "history.jsonl", np.random.default_rng(4)
    found = [
        judged(session(generator, slower)).model_copy(update={"head": f"v{n}"})
        for n, slower in enumerate((1, 1, 1.2))
    ]  # fmt: skip
    file.write_text("".join(f"{result.model_dump_json()}\n" for result in found), encoding="utf-8")
    return file


def test_a_history_is_drawn_request_by_request(kept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = kept.with_suffix(".html")
    assert cli.main(["history", str(kept), "--html", str(target)]) == Exit.OK
    lines = capsys.readouterr().out.splitlines()
    drawn = lines[lines.index("item:") + 1 : lines.index("item:") + 4]
    assert drawn[-1].index("|") < drawn[-1].index("o")
    assert drawn[-1].endswith("x")
    assert "slower: item" in lines[-1]
    text = target.read_text(encoding="utf-8")
    assert text.count("<svg") == 3 * 4
    assert "<script" not in text
    assert "http" not in text.replace("http-equiv", "")


def test_a_page_says_what_the_session_said_and_escapes_it() -> None:
    result = judged(session(np.random.default_rng(1), 1.2)).model_copy(update={"head": "<b>&"})
    text = page.of_session(result)
    assert "&lt;b&gt;&amp;" in text
    assert '<h1 class="slower">slower: item' in text
    assert text.count("<svg") == len(result.requests)


@pytest.mark.parametrize(("text", "said"), [(None, "begins one"), ("{}\n", "line 1 is no session")])
def test_what_is_no_history_is_said(
    tmp_path: Path, text: str | None, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if text is not None:
        (tmp_path / "h").write_text(text, encoding="utf-8")
    assert cli.main(["history", str(tmp_path / "h")]) == Exit.USAGE
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flag", "name", "said"),
    [("--html", "none/page.html", "there is no folder"), ("--history", "h", "line 1 is no session")],
)
def test_where_a_verdict_cannot_be_put_is_said_before_anything_is_measured(
    tmp_path: Path, flag: str, name: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "tfb.toml").write_text('[service]\nstart = "false"\n[[request]]\nname = "a"\npath = "/"\n', "utf-8")
    (tmp_path / "h").write_text("{}\n", encoding="utf-8")
    words = ["compare", "--service", str(tmp_path), "--base", f"dir:{tmp_path}", flag, str(tmp_path / name), "--yes"]
    assert cli.main(words) == Exit.USAGE
    assert said in capsys.readouterr().err


def test_a_page_that_finds_no_room_is_told_and_the_verdicts_are_printed(
    kept: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["history", str(kept), "--html", "/dev/full"]) == Exit.ENVIRONMENT
    said = capsys.readouterr()
    assert "slower: item" in said.out
    assert "/dev/full: cannot be written: No space left on device" in said.err
