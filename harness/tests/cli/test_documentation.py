"""The documentation is a tested surface: every flag and every verb stands on some page."""

import re
from functools import cache

import pytest

from harness.cli.verbs import VERBS
from harness.paths import REPOSITORY


@cache
def pages() -> str:
    """All pages for users."""
    files = [*(REPOSITORY / "docs").glob("*.md"), REPOSITORY / "README.md", REPOSITORY / "CONTRIBUTING.md"]
    return "\n".join(path.read_text(encoding="utf-8") for path in files if path.exists())


def flags(text: str) -> set[str]:
    """All long flags of a text; --flag-name is not --flag."""
    return set(re.findall(r"(?<![\w-])--[a-z][a-z-]*[a-z]", text))


def test_every_flag_of_a_run_is_documented() -> None:
    from harness.cli.arguments import parser

    assert flags(parser().format_help()) - flags(pages()) == set()


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_is_documented_with_its_flags(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert re.search(rf"`(\./tfb )?{verb}[ `]", pages()), f"./tfb {verb} stands on no page"
    with pytest.raises(SystemExit) as end:
        VERBS[verb].load()(["--help"])
    assert end.value.code == 0
    assert flags(capsys.readouterr().out) - flags(pages()) == set()


def test_no_page_documents_a_flag_of_a_run_that_does_not_exist() -> None:
    from harness.cli.arguments import parser

    table = (
        (REPOSITORY / "docs" / "cli.md")
        .read_text(encoding="utf-8")
        .partition("## The flags of a run")[2]
        .partition("## Other verbs")[0]
    )
    assert flags(table) - flags(parser().format_help()) == set()


def test_the_recipe_for_pull_requests_uses_flags_that_exist() -> None:
    from harness.cli.arguments import parser
    from harness.cli.compare import arguments

    recipe = (REPOSITORY / "docs" / "pull-requests" / "tfb.yml").read_text(encoding="utf-8")
    known = {"verify": flags(parser("verify").format_help()), "compare": flags(parser().format_help())}
    known["compare"] |= flags(arguments().format_help())
    commands = re.findall(r"\./tfb (\w+) (.*)", recipe)
    assert [verb for verb, _ in commands] == ["verify", "compare"]
    for verb, words in commands:
        assert flags(words) - known[verb] == set()
