"""Attack: untrusted text acts as a command or as markup in terminals, CI logs, Markdown, JSON and XML."""

import io
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from rich.table import Table
from rich.text import Text

from harness import cli
from harness.console import PlainFormatter, SafeConsole
from harness.errors import ConfigError
from harness.paths import REPOSITORY
from harness.plain_text import escape_markdown, inert_line, is_printable, json_text, printable
from harness.records.verification_record import CheckResult, Outcome, VerificationRecord
from harness.report.markdown import table_section
from harness.report.tables import TableRows
from harness.report.verification_results import VerificationReport, as_github, as_json, as_junit, print_report
from harness.tests.repeated import for_each
from harness.tests.scene import Scene

CONTROLS = (
    *("\x1b[2J", "\x1b]0;title\x07", "\x1b]8;;http://x\x1b\\link", "\x9b31m", "\x1bPq", "a\rb", "a\x08\x08", "\x7f"),
    *("\u202egnp.exe", "\u2066x", "a\u2028b", "\x85", "\u061c", "\U000e0041", "\x00"),
)
COMMANDS = (
    *("::error::x", "  ::error::x", "\t::stop-commands::token", "::set-output name=a::b", "::add-mask::x"),
    *("\ufeff::error::x", "\u00a0::warning file=a::b", "::group::x", "::debug::x", "::save-state name=a::b"),
    *("##[command]x", "text ##[error]x", "##[add-matcher]x", "###[error]x", "##vso[task.setvariable variable=a]b"),
    *("##teamcity[buildStop]", "section_start:1:name", "section_end:1:name", " section_start:1:a[collapsed=true]"),
    *("travis_fold:start:x", "travis_time:start:x", "a\n::error::x", "a\r\n::error::x", "a\r::error::x"),
    *("\n\n::error::x", "a\x0b::error::x", "a\x0c::error::x", "a\u2028::error::x"),
)
MARKUP = ("[red]x[/red]", "[link=http://x]y[/link]", "[/bold]", "[bold", ":boom:", "[@click=app.quit]x[/]")
DOCUMENTS = (
    *("```\n# x\n```", "~~~", "# heading", "- item", "1. item", "1) item", "> quote", "    code", "***", "---", "==="),
    *("[x](javascript:alert(1))", "![x](http://x/y.png)", "<script>alert(1)</script>", "<img src=x onerror=y>", "<!--"),
    *("<http://x>", "&lt;b&gt;", "&#60;b&#62;", "a | b | c", "`code`", "**bold**", "_it_", "~~gone~~", "$x$", "\\"),
    *("[x]: http://x", "[^1]: note", "</td></table>", "x\n\n# y", "- [ ] task", "|---|", "a  \nb", "+ x", "* x", "`"),
)
MENTIONS = (
    "@octocat",
    "cc @org/team",
    "#123",
    "GH-12",
    "owner/name#5",
    "http://x.y",
    "https://x.y",
    "www.x.y",
    "a@b.cd",
)
PAYLOADS = (*CONTROLS, *COMMANDS, *MARKUP, *DOCUMENTS, *MENTIONS)

# Log lines that GitHub, Azure, GitLab, TeamCity and Travis interpret as commands.
ACTS = re.compile(
    r"^[\s\ufeff]*::[A-Za-z]|##\[|##vso\[|##teamcity\[|^[\s\ufeff]*section_(?:start|end):"
    r"|^[\s\ufeff]*travis_(?:fold|time):",
    re.MULTILINE,
)


def require_inert(text: str) -> None:
    """Assert that the text contains no terminal escape sequence and no CI command."""
    assert is_printable(text), ascii(text)
    for line in text.split("\n"):
        assert not ACTS.search(line), ascii(line)


def printed(capsys: pytest.CaptureFixture[str], command: Callable[[], object]) -> tuple[str, str]:
    """Call a function like a tfb command and return what it printed to stdout and stderr."""
    cli.guarded(lambda: (command(), 0)[1])
    found = capsys.readouterr()
    return found.out, found.err


@for_each("payload", PAYLOADS)
def test_whatever_is_printed_is_inert(payload: str, capsys: pytest.CaptureFixture[str]) -> None:
    def show() -> None:
        for text in (payload, f"a\n{payload}", f" {payload}\n{payload}"):
            print(text)
            print(text, file=sys.stderr, flush=True)
        sys.stdout.write(payload)

    for text in printed(capsys, show):
        require_inert(text)


@for_each("payload", COMMANDS)
def test_a_command_that_comes_in_pieces_is_inert(payload: str, capsys: pytest.CaptureFixture[str]) -> None:
    def show() -> None:
        for character in f"\n{payload}\n":
            sys.stdout.write(character)
            sys.stdout.flush()

    require_inert(printed(capsys, show)[0])


@for_each("payload", PAYLOADS)
def test_errors_are_inert(payload: str, capsys: pytest.CaptureFixture[str]) -> None:
    def fail(error: Exception) -> Callable[[], int]:
        def command() -> int:
            raise error

        return command

    for error in (ConfigError(payload), ConfigError(f"x\n{payload}"), OSError(2, payload, payload), KeyError(payload)):
        cli.guarded(fail(error))
        require_inert(capsys.readouterr().err)


@for_each("payload", PAYLOADS)
def test_the_console_shows_text_as_it_is(payload: str, capsys: pytest.CaptureFixture[str]) -> None:
    def show() -> None:
        console = SafeConsole(width=200)
        table = Table(title=Text(payload))
        table.add_column(Text(payload))
        table.add_row(payload)
        for shown in (payload, Text(payload), Text.assemble("\n", (payload, "bold")), table):
            console.print(shown)

    text = printed(capsys, show)[0]
    require_inert(text)
    if payload in MARKUP:
        assert text.count(payload) >= 4  # every payload is printed as plain text, not interpreted as markup


def test_folded_lines_are_inert(capsys: pytest.CaptureFixture[str]) -> None:
    """Line wrapping can move text to the start of a line, where CI systems look for commands."""
    text = "x" * 20 + "::error::y" + "z" * 20 + "##[error]"
    require_inert(printed(capsys, lambda: SafeConsole(width=20).print(Text(text)))[0])


def test_rich_keeps_its_own_control_sequences() -> None:
    """Rich can still print colours and redirect streams."""

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    def show() -> int:
        SafeConsole(force_terminal=True, width=80).print(Text("x\x1b[2J", "red"))
        return 0

    before, sys.stdout = sys.stdout, Terminal()
    try:
        terminal = sys.stdout
        cli.guarded(show)
    finally:
        sys.stdout = before
    assert "\x1b[31mx\\x1b[2J\x1b[0m" in terminal.getvalue()


def test_ordinary_text_is_printed_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    lines = ("std::vector<int>", "::1 is localhost", "C# and F##", "a: b", "name: ü 漢 – ×1.5", "\tx", "# title")
    out, _ = printed(capsys, lambda: [print(line) for line in lines])
    assert out.splitlines() == list(lines)


def test_a_log_for_people_is_inert() -> None:
    import logging

    for payload in CONTROLS:
        record = logging.LogRecord("tfb", logging.INFO, "", 0, "start: %s", (payload,), None)
        assert is_printable(PlainFormatter("%(message)s").format(record))


def test_no_module_goes_around_the_streams() -> None:
    around = re.compile(r"sys\.__std|os\.write\((?:[12]\b|sys)|\.commands\b|/dev/(?:stdout|stderr|tty)|markup=True")
    violations = [
        f"{path.relative_to(REPOSITORY)}: {line.strip()}"
        for path in sorted((REPOSITORY / "harness").rglob("*.py"))
        if "tests" not in path.parts and path.name not in ("console.py", "check.py")
        for line in path.read_text(encoding="utf-8").splitlines()
        if around.search(line)
    ]
    assert violations == []


def verified(payload: str) -> VerificationReport:
    result = CheckResult(
        check="status-ok", rule="http.2", outcome=Outcome.FAIL, message=payload, expected=payload, actual=payload
    )
    verdict = VerificationRecord(
        implementation=payload,
        test_type="json",
        process=0,
        thorough=True,
        outcome=Outcome.FAIL,
        results=(result, result.model_copy(update={"outcome": Outcome.WARN})),
        duration=1.0,
    )
    return VerificationReport(verdicts=[verdict], problems=[payload, f"x\n{payload}"], folders={payload: payload})


@for_each("payload", PAYLOADS)
def test_github_s_annotations_are_one_line_each(payload: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = as_github(verified(payload))
    *lines, summary, rest = text.split("\n")
    assert (len(lines), summary, rest) == (4, "2 problems, 0 of 1 test types passed", "")
    for line in lines:
        command = re.fullmatch(r"::(error|warning) (?:file=[^,]*,)?title=[^,]*?::(.*)", line)
        assert command, ascii(line)
        require_inert(command[2])
        assert "##[" not in line
    # These CI commands come from tfb itself.
    assert printed(capsys, lambda: print_report("github", verified(payload)))[0] == text


@pytest.mark.parametrize("name", ["json", "junit"])
@for_each("payload", PAYLOADS)
def test_documents_are_inert_and_can_be_read(name: str, payload: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, lambda: print_report(name, verified(payload)))[0]
    require_inert(text)
    if name == "json":
        assert json.loads(text) == json.loads(as_json(verified(payload)))
        assert json.loads(text)["problems"][0] == payload
    else:
        ElementTree.fromstring(text)  # noqa: S314 - our own
        assert len(ElementTree.fromstring(as_junit(verified(payload)))) == 2  # noqa: S314 - our own


@for_each("payload", PAYLOADS)
def test_json_means_the_same(payload: str) -> None:
    for document in (json.dumps([payload]), json.dumps({payload: [payload]}, ensure_ascii=False)):
        found = json_text(document)
        require_inert(found)
        assert json.loads(found) == json.loads(document)


PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"])
PLACES = ("{}", "- {}", "a\n\n{}", "## {}", "| x | y |\n| --- | --- |\n| {} | z |\n", "> {}")
TEXTS = {"text", "softbreak"}


def inline(document: str) -> tuple[list[str], list[str]]:
    """Return the types of all block tokens and of all inline tokens in a Markdown document."""
    tokens = PARSER.parse(document)
    blocks = [token.type for token in tokens]
    return blocks, [child.type for token in tokens for child in token.children or ()]


def require_plain(payload: str) -> None:
    """Assert that the escaped payload renders as plain text wherever it appears in a Markdown document."""
    text = escape_markdown(payload)
    assert "\n" not in text
    for place in PLACES:
        blocks, children = inline(place.format(text))
        assert blocks == inline(place.format("x"))[0] or not text, (place, ascii(text))
        assert set(children) <= TEXTS, (place, ascii(text), children)
    require_inert(inert_line(text))
    shown = text.replace("&#8203;", "\u200b")
    assert not re.search(r"[@#]\w|://|www\.|GH-\d", shown, re.IGNORECASE), ascii(text)


@for_each("payload", PAYLOADS)
def test_text_in_markdown_is_text(payload: str) -> None:
    require_plain(payload)
    require_plain(f"x {payload}")


@settings(max_examples=300, deadline=None)
@given(st.text(st.sampled_from("`~*_[]()<>#+-=|!\\&;:@$.1x \n\t\"'/{}^"), max_size=12))
def test_any_text_in_markdown_is_text(text: str) -> None:
    require_plain(text)
    require_plain(f"x{text}")


@for_each("payload", PAYLOADS)
def test_a_table_of_markdown_keeps_its_cells(payload: str) -> None:
    rows = TableRows([payload, payload])
    table = rows.table(payload, rows.column(payload, lambda row: row), rows.column("y", lambda row: row))
    blocks, children = inline(table_section(table))
    assert (blocks.count("tr_open"), blocks.count("td_open"), blocks.count("heading_open")) == (3, 4, 1)
    assert set(children) <= TEXTS


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=30))
def test_any_text_is_inert_once_printable(text: str) -> None:
    for line in printable(text).split("\n"):
        require_inert(inert_line(line))


@pytest.mark.parametrize(
    "payload", ["::error::x", "a\n::error::x", "\x1b[2J", "##[error]x", "section_start:1:x", "[red]"]
)
def test_names_of_folders_are_inert(payload: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tree = tmp_path / "a\n::group::x"
    folder = tree / "Go" / payload
    folder.mkdir(parents=True)
    for text in ("{", json.dumps({"framework": payload, "tests": [{payload: {payload: payload}}]})):
        (folder / "benchmark_config.json").write_text(text)
        for words in (["list"], ["list", payload], ["verify", payload], ["run", "--test-dir", f"Go/{payload}"]):
            cli.main([*words, "--frameworks", str(tree)])
            found = capsys.readouterr()
            require_inert(found.out + found.err)


@pytest.mark.e2e
@pytest.mark.timeout(300)
@pytest.mark.parametrize("form", ["text", "github", "junit"])
def test_the_log_of_a_build_is_inert(form: str, scene: Scene) -> None:
    lines = r"\n::stop-commands::x\n  ::error::y\n##[command]z\nsection_start:1:a\r\033[0K\033[2J\n"
    scene.add("bad", build=["sh", "-c", f"printf '{lines}'; exit 3"])
    answer = scene.measure("--test", "bad", "--type", "json", "--mode", "verify", "--format", form, seconds=250)
    require_inert(answer.stderr)
    if form != "github":
        require_inert(answer.stdout)
    else:
        own = re.compile(r"::error (file=[^,:]+,)?title=")
        assert [line for line in answer.stdout.splitlines() if ACTS.match(line) and not own.match(line)] == []
    assert "stop-commands" in answer.text
