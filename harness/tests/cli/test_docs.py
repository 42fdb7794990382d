"""The documentation has valid links and commands, and its terms follow the glossary."""

import re
from collections.abc import Iterator, Sequence, Set
from importlib.util import find_spec
from pathlib import Path

import pytest
from cyclopts import App

from harness.cli.verbs import VERBS, application
from harness.errors import Exit
from harness.experiment.validity import EXCLUDING_RULES, RULES
from harness.paths import PROFILES, REPOSITORY
from harness.tests.doubles.own import own_implementations
from harness.verify.checks.registry import CHECKS

PAGES = sorted(
    path.relative_to(REPOSITORY).as_posix()
    for pattern in ("*.md", "docs/**/*.md", "results/*.md")
    for path in REPOSITORY.glob(pattern)
)
MOST_OF_A_PAGE, MOST_OF_ALL = 3_500, 24_000  # maximum words per page and in total
# Environment variables that tfb sets for itself, for example for docker/compose.yaml.
INTERNAL = (
    r"TFB_(CALLER|CHECK|CHILD|CONSENTED|CONTAINER|DATABASE|LOADGEN|METER|NOFILE|"
    r"OWNER|RUN|SERVER|SKIPPED|TEST|VALUE|WEBSOCKET|WRK)"
)
READMES = sorted({(one.folder / "README.md").relative_to(REPOSITORY).as_posix() for one in own_implementations()})


def test_pages_stay_short() -> None:
    written = [page for page in PAGES if not page.startswith("docs/reference/")]  # reference pages are generated
    words = {page: len((REPOSITORY / page).read_text(encoding="utf-8").split()) for page in written}
    assert {page: count for page, count in words.items() if count > MOST_OF_A_PAGE} == {}
    assert sum(words.values()) <= MOST_OF_ALL


def headings(page: Path) -> set[str]:
    """Return the anchors that GitHub creates for a page's headings."""
    matches = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in matches}


@pytest.mark.parametrize("page", [*PAGES, *READMES])
def test_links_of_pages_have_targets(page: str) -> None:
    path = REPOSITORY / page
    links = re.findall(r"\]\(([^)#\s]*)(?:#([^)]*))?\)", path.read_text(encoding="utf-8"))
    hosted = ("https://", "../../actions/")  # the second prefix is a page of the repository on GitHub
    local = [(path.parent / link if link else path, anchor) for link, anchor in links if not link.startswith(hosted)]
    assert [target for target, _ in local if not target.exists()] == []
    named = [(target, anchor) for target, anchor in local if anchor and target.suffix == ".md"]
    assert [(target.name, anchor) for target, anchor in named if anchor not in headings(target)] == []


def command_of(verb: Sequence[str]) -> App:
    """Return the parser of a verb such as ``claims run``, or of TechEmpower's flags if there is no verb."""
    app = application()
    for name in verb:
        app = app[name]
    return app


def flags_of(verb: Sequence[str]) -> set[str]:
    """Return all flags of a verb."""
    return {name for each in command_of(verb).assemble_argument_collection() for name in each.names} | {"--help"}


def commands(text: str) -> Iterator[list[str]]:
    """Yield the arguments of each ``./tfb`` command on a page.

    A command ends at a comment or at the end of its line.
    """
    for matches in re.finditer(r"(?<![\w/])\./tfb\b([^`\n#|>;)]*)", text):
        yield matches[1].replace("[", " ").replace("]", " ").split()


@pytest.mark.needs_extra("claims")
@pytest.mark.needs_extra("gate")
@pytest.mark.parametrize("page", [*PAGES, *READMES])
def test_commands_and_modules_of_pages_exist(page: str) -> None:
    text = (REPOSITORY / page).read_text(encoding="utf-8")
    for arguments in commands(text):
        verb = [each.rstrip(",.:") for each in arguments[:1] if not each.startswith("-") and each != "VERB"]
        assert set(verb) <= set(VERBS), f"./tfb {' '.join(arguments)}"
        if verb == ["claims"]:
            verb += [each for each in arguments[1:2] if each == "run"]
        known = flags_of(verb) | (flags_of(["run"]) if "--" in arguments else set())
        flags = {each.partition("=")[0].rstrip(",.:") for each in arguments if each.startswith("--")} - {"--"}
        assert flags - known == set(), f"./tfb {' '.join(arguments)}"
    modules = set(re.findall(r"python -m (harness[\w.]*)", text))
    assert {name for name in modules - modules_of_removed_extras(modules) if find_spec(name) is None} == set()


def modules_of_removed_extras(modules: Set[str]) -> Set[str]:
    """Return the modules whose folder in harness/extras has been removed."""
    in_extras = {name for name in modules if name.startswith("harness.extras.")}
    return {name for name in in_extras if not (REPOSITORY / "harness" / "extras" / name.split(".")[2]).exists()}


def test_cli_page_has_every_exit_code_and_variable() -> None:
    page = (REPOSITORY / "docs" / "cli.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| (\d+) \|", page, re.MULTILINE) == [str(int(code)) for code in Exit]
    sources = [
        REPOSITORY / "tfb",
        *(REPOSITORY / "harness").glob("[!t]*/**/*.py"),
        *(REPOSITORY / "toolset").glob("provision/*"),
    ]
    used = {name for path in sources for name in re.findall(r"\bTFB_[A-Z_]+\b", path.read_text(encoding="utf-8"))}
    assert {name for name in used if f"`{name}`" not in page and not re.match(INTERNAL, name)} == set()


def test_method_page_has_every_validity_check() -> None:
    page = (REPOSITORY / "docs" / "method.md").read_text(encoding="utf-8")
    table = page.partition("## Validity checks")[2].partition("## ")[0]
    rows = re.findall(r"^\| ([a-z-]+(?:, [a-z-]+)*) \|.*\| ([^|]+) \|$", table, re.MULTILINE)
    excludes = {name: value.startswith("yes") for names, value in rows for name in names.split(", ") if name != "check"}
    assert excludes == {name: name in EXCLUDING_RULES for name in RULES}


def source_text() -> str:
    """Return the product's source code with adjacent string literals joined."""
    sources = [
        REPOSITORY / "tfb",
        *(REPOSITORY / "harness").glob("[!t]*/**/*.py"),
        REPOSITORY / "harness" / "__main__.py",
    ]
    return re.sub(r"\"\s*\n\s*f?\"", "", "\n".join(path.read_text(encoding="utf-8") for path in sources))


@pytest.mark.needs_extra("gate")
def test_messages_of_the_troubleshooting_page_exist() -> None:
    page = (REPOSITORY / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
    messages = re.findall(r"^\| `([^`]+)` \|", page, re.MULTILINE)
    assert len(messages) >= 20
    text = source_text()
    assert [message for message in messages if message not in text and message not in CHECKS] == []


INSTEAD = {  # pattern -> term to use instead
    r"\bin turns?\b|\bturns\b|\blaps?\b": "rounds, in alternation",
    r"\bledgers?\b": "expected queries",
    r"\bmeanwhile\b": "concurrent changes, at the same time",
    r"\bobituar": "crash reason",
    r"\bguests?\b": "foreign implementation",
    r"\bfirst[ -]answers?\b": "startup time",
    r"\breplicates?\b": "process",
    r"\bsamples?\b": "trial",
    r"\bduets?\b|\b(in|per|of|whole|same|further) blocks?\b": "round",
    r"\bprobes?\b|\baudited loads?\b|\ban audit under\b": "trial",
    r"\bsets? of machines\b|\bmachine[- ]sets?\b": "deployment",
    r"\bwords?\b": "flag, argument, label",
    r"(?<!degrees of )\bfreedom\b": "degrees of freedom",
}


def objections(text: str) -> list[str]:
    """Return each line that contains a wrong term, together with the correct term."""
    lines = text.splitlines()
    return [
        f"{number}: {matches[0]!r}: write {instead}"
        for number, line in enumerate(lines, 1)
        for term, instead in INSTEAD.items()
        if (matches := re.search(term, line, re.IGNORECASE))
    ]


TEXTS = [page for page in PAGES if page != "CHANGELOG.md"]  # the changelog names removed features
TEXTS += [path.relative_to(REPOSITORY).as_posix() for path in sorted(PROFILES.glob("*.toml"))]


@pytest.mark.parametrize("name", TEXTS)
def test_pages_and_profiles_use_standard_terms(name: str) -> None:
    assert objections((REPOSITORY / name).read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("verb", [*VERBS, pytest.param("claims run", marks=pytest.mark.needs_extra("claims"))])
def test_every_flag_has_a_help_text(verb: str) -> None:
    command = command_of(verb.split())
    flags = command.assemble_argument_collection()
    assert [each.name for each in flags if each.show and not each.parameter.help] == []
    helps = [each.parameter.help or "" for each in flags]
    helps += [command.help, *(known.help for known in VERBS.values())]
    assert objections("\n".join(helps)) == []
