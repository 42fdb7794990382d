"""Attack: server output, commit messages or logs act as markup or commands in the gate's reports."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from selectolax.lexbor import LexborHTMLParser

from harness import cli
from harness.cli.output import VerdictOutputs, guarded_streams
from harness.errors import Exit
from harness.extras.gate import report
from harness.extras.gate.cli import publish_result
from harness.extras.gate.judge import GateResult, RequestVerdict
from harness.plain_text import inert_lines, is_printable, markdown_block, markdown_code
from harness.records.safe_write import UnsafePathError
from harness.tests.doubles.printed import printed
from harness.tests.repeated import for_each

PAYLOADS = (
    "@everyone please look",
    "see #1 and GH-12 and owner/repo#3",
    "https://evil.example/x www.evil.example ftp://evil.example mail@evil.example",
    "[click](https://evil.example)",
    "![seen](https://evil.example/pixel.png)",
    "<img src=x onerror=alert(1)>",
    "<script>alert(1)</script>",
    "</td></tr></table><h1>passed</h1>",
    "<!-- hidden",
    "<details><summary>x",
    "`code` and ``more`` and ```",
    "```\n# heading\n@everyone\n```",
    "~~~\nbroken\n~~~",
    "a | b | c",
    "a \\| b",
    "**bold** _italic_ ~~gone~~",
    "# heading",
    "- item\n1. item\n> quote",
    "::error::failed",
    "x\n::stop-commands::t\n::add-mask::a\n::set-output name=x::y",
    "x\n   ::error file=a::indented",
    "x\r::error::after a return",
    "x\u2028::error::after a separator",
    "##[error]azure ##vso[task.setvariable variable=x]y ##teamcity[x]",
    "\x1b[2J\x1b]0;title\x07\x1b]8;;https://evil.example\x1b\\link",
    "\u202egnp.exe \u2066x\u2069 \x9b2J \x00",
    "deadbeefdeadbeefdeadbeefdeadbeefdeadbeef",
    ":tada: &amp; &lt;b&gt; &#64;everyone",
    "$\\href{https://evil.example}{x}$",
    "[ref]: https://evil.example",
    "- [x] done\n---\n***",
    "section_start:1:x\r\x1b[0K",
    "'); DROP TABLE x;--\t\ttabs",
    "x" * 5000,
    "",
)
PLACES = ("reason", "base", "head", "note", "later")


def result(place: str, payload: str) -> GateResult:
    """Return a failed comparison with ``payload`` in the field ``place``."""
    log = f"head could not be built: make failed:\n{payload}\nlog: x"
    reasons = {"reason": payload, "later": log}
    failed = RequestVerdict(request="item", verdict="failed", reason=reasons.get(place, "broken") or "broken")
    other = RequestVerdict(request="other", verdict="slower", reason=payload if place == "reason" else "")
    return GateResult(
        base=payload if place == "base" else "main",
        head=payload if place == "head" else "the working tree",
        threshold=0.05,
        verdict="failed",
        requests=(failed, other),
        minutes=1.0,
        started_at=0.0,
        notes=(payload,) if place == "note" else (),
    )


def every(test: Callable[..., None]) -> Callable[..., None]:
    repeated: Callable[..., None] = pytest.mark.parametrize("place", PLACES)(for_each("payload", PAYLOADS)(test))
    return repeated


def require_quiet(text: str) -> None:
    """Assert that the text contains no terminal escape sequence and no CI command."""
    for line in text.split("\n"):
        assert is_printable(line), line
        assert not re.match(r"\s*::", line), line
        assert not re.search(r"##\w*\[", line), line


@every
def test_text_for_a_terminal_is_inert(place: str, payload: str) -> None:
    said = printed(result(place, payload))
    require_quiet(said)
    first = said.split("\n")[0]
    assert first.startswith("failed: ")


@every
def test_json_is_one_line_of_ascii(place: str, payload: str, capsys: pytest.CaptureFixture[str]) -> None:
    comparison = result(place, payload)
    publish_result(comparison, VerdictOutputs(json=True))
    line = capsys.readouterr().out
    assert line.isascii()
    assert line.count("\n") == 1
    require_quiet(line)
    assert GateResult.model_validate(json.loads(line)) == comparison


@every
def test_a_page_shows_text_as_text(place: str, payload: str, tmp_path: Path) -> None:
    publish_result(result(place, payload), VerdictOutputs(html=str(tmp_path / "page.html")))
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    require_quiet(page)
    tags = {node.tag for node in LexborHTMLParser(page).css("*")}
    assert tags <= {
        *("html", "head", "meta", "title", "style", "body", "h1", "p", "b", "table", "tbody", "tr", "th", "td"),
        *("ul", "li", "header", "main", "div", "span", "thead"),
    }


@every
def test_a_comment_is_inert(place: str, payload: str) -> None:
    comment = report.format_markdown(result(place, payload))
    require_quiet(comment)
    rows = [line for line in comment.split("\n") if line.startswith("| ")]
    for line in outside_code(comment):
        assert not re.search(r"[@<>`~\\]|\]\(|!\[|https?:|www\.|#\d|GH-\d|[0-9a-f]{7,}|:\w+:|\$|&", line), line
        assert not re.match(r"\s*(#|>|\d+\.|---|===|\[\w+\]:|-\s+\[|\*\*\*)", line), line
    for row in rows:
        assert row.count("|") == rows[0].count("|"), row


def outside_code(text: str) -> Iterator[str]:
    """Yield the lines of a Markdown document without code blocks and code spans (as CommonMark defines them)."""
    fence = ""
    for line in text.split("\n"):
        if fence:
            if re.fullmatch(rf" {{0,3}}{fence[0]}{{{len(fence)},}}\s*", line):
                fence = ""
            continue
        if opened := re.match(r" {0,3}(`{3,}|~{3,})[^`]*$", line):
            fence = opened[1]
            continue
        yield re.sub(r"(?<!`)(`+)(?!`)(.*?)(?<!`)\1(?!`)", "code", line)
    assert not fence, "a block of code has no end"


@every
def test_history_is_inert(place: str, payload: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept = tmp_path / "kept"
    kept.unlink(missing_ok=True)
    for _ in range(2):
        with guarded_streams():
            publish_result(result(place, payload), VerdictOutputs(history=str(kept)))
    assert kept.read_text(encoding="utf-8").count("\n") == 2
    assert cli.main(["history", str(kept)]) == Exit.OK
    require_quiet(capsys.readouterr().out)


@for_each("payload", PAYLOADS)
def test_names_of_a_hostile_history_are_inert(payload: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = result("head", payload)
    odd = made.model_copy(update={"requests": (RequestVerdict(request=f"a{payload}", verdict="failed"),)})
    (tmp_path / "kept").write_text(json.dumps(odd.model_dump(mode="json")) + "\n", encoding="utf-8")
    assert cli.main(["history", str(tmp_path / "kept")]) == Exit.OK
    require_quiet(capsys.readouterr().out)


@pytest.mark.parametrize("started", [1e300, -1e300, 1e18])
def test_a_history_with_an_impossible_time_is_shown(
    started: float, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = result("head", "x").model_copy(update={"started_at": started})
    (tmp_path / "kept").write_text(report.format_json(made) + "\n", encoding="utf-8")
    assert cli.main(["history", str(tmp_path / "kept")]) == Exit.OK
    assert "unknown time" in capsys.readouterr().out


def test_a_verdict_is_written_through_no_link(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    for link in (".page.html.part", "page.html", "kept", ".kept.part"):
        (tmp_path / link).symlink_to(victim)
    with pytest.raises(UnsafePathError, match=r"page\.html is a symbolic link"):
        publish_result(result("head", "x"), VerdictOutputs(html=str(tmp_path / "page.html")))
    (tmp_path / "page.html").unlink()
    publish_result(result("head", "x"), VerdictOutputs(html=str(tmp_path / "page.html")))
    assert (tmp_path / "page.html").read_text().startswith("<!doctype html>")
    assert victim.read_text() == "mine"


@pytest.mark.parametrize(
    "plain", ["slower: items 1.21× [1.15, 1.27]", "same within 5 %", "item", "–", "needs 3 more minutes"]
)
def test_plain_words_stay_plain(plain: str) -> None:
    assert markdown_code(plain) == plain


@for_each("payload", PAYLOADS)
def test_a_block_ends_only_at_its_own_fence(payload: str) -> None:
    lines = payload.split("\n")
    assert [*outside_code(f"{markdown_block(lines)}\nafter")] == ["after"]


def test_commands_of_ci_services_are_escaped() -> None:
    assert (
        inert_lines("::error::x\n \t::x\n##[group]y ##vso[z]")
        == "\\x3a:error::x\n \t\\x3a:x\n\\x23#[group]y \\x23#vso[z]"
    )
