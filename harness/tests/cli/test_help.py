"""Help that fits a screen, and the way from TechEmpower's flags to what does their work."""

import pytest

from harness import cli
from harness.cli.arguments import MODES, parser
from harness.cli.help import REPLACED, overview, short
from harness.cli.verbs import VERBS
from harness.errors import Exit


@pytest.mark.parametrize("verb", ["", *MODES])
def test_the_help_fits_forty_lines_of_eighty_columns(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        cli.main([verb, "--help"] if verb else ["--help"])
    lines = capsys.readouterr().out.splitlines()
    assert end.value.code == 0
    assert len(lines) < 40
    assert max(map(len, lines)) <= 80


def test_the_overview_names_every_verb_under_a_group() -> None:
    lines = overview().splitlines()
    assert [verb for verb in VERBS if not any(line.startswith(f"  {verb} ") for line in lines)] == []


@pytest.mark.parametrize("verb", MODES)
def test_a_flag_that_the_short_help_does_not_explain_is_named_in_it(verb: str) -> None:
    known = parser(verb)
    text = short(known)
    named = {a.option_strings[0] for a in known._actions if a.option_strings} - {"--help-all"}
    assert {flag for flag in named if flag not in text} == set()
    assert "every flag" in known.format_help()  # the long one is whole again


@pytest.mark.parametrize("flag", REPLACED)
def test_a_flag_of_techempower_s_that_is_gone_says_what_does_its_work(
    flag: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main([flag, "x"]) == Exit.USAGE
    message = capsys.readouterr().err
    assert message.startswith(f"tfb: {flag} is TechEmpower's; here ")
    assert any(word in message for word in (*(f"./tfb {verb}" for verb in VERBS), "--cpuset-cpus"))


def test_the_version_is_that_of_the_project_and_its_commit(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        cli.main(["--version"])
    assert end.value.code == 0
    assert capsys.readouterr().out.startswith("tfb 0.1.0")
