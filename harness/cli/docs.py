"""The pages of docs/ as a site with search, which works from the file system: ``python -m harness.cli.docs``."""

import io
import re
import shutil
import sys
import tempfile
from pathlib import Path

from harness.errors import EnvironmentLacksError, TfbError
from harness.paths import REPOSITORY

PAGES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "results/README.md")  # beside those of docs/
CONTENTS = (  # the left side, from top to bottom; a page that is not named stands at its end
    *("docs/cli", "CONTRIBUTING", "docs/requirements", "docs/method", "docs/claims", "docs/techempower"),
    *("docs/orders", "docs/load-generator", "docs/dashboard", "results/README", "docs/docker", "docs/machines"),
    *("docs/pull-requests/README", "docs/architecture", "docs/dependencies"),
    *("SECURITY", "CHANGELOG"),
)
SETTINGS = {
    "project": "tfb",
    "html_title": "tfb",
    "html_theme": "furo",
    "extensions": ["myst_parser"],
    "root_doc": "README",
    "source_suffix": {".md": "markdown"},
    "myst_heading_anchors": 3,
    "html_copy_source": False,
    "html_show_copyright": False,
    "highlight_language": "none",
    # Links to folders and sources lead nowhere in a site of pages; those to pages are looked at by a test.
    "suppress_warnings": ["myst.xref_missing", "myst.header", "misc.highlighting_failure"],
}


def main() -> None:
    """Build; prints the page to open."""
    output = REPOSITORY / ".tfb" / "docs"
    with tempfile.TemporaryDirectory(prefix="tfb-docs-") as scratch:
        build(gathered(Path(scratch) / "pages"), output, Path(scratch) / "doctrees")
    print(output / "README.html")


def gathered(target: Path, repository: Path = REPOSITORY) -> Path:
    """All pages as they lie in the repository, with a table of contents, and an anchor for each requirement."""
    shutil.copytree(repository / "docs", target / "docs", ignore=shutil.ignore_patterns(".*"))
    for name in PAGES:
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(repository / name, target / name)
    found = sorted(path.relative_to(target).with_suffix("").as_posix() for path in target.rglob("*.md"))
    others = [name for name in found if name not in (*CONTENTS, "README")]
    contents = "\n".join(name for name in (*CONTENTS, *others) if name in found)
    front = target / "README.md"
    front.write_text(
        f"{front.read_text(encoding='utf-8')}\n```{{toctree}}\n:hidden:\n\n{contents}\n```\n", encoding="utf-8"
    )
    rules = target / "docs" / "requirements.md"
    rules.write_text(anchored(rules.read_text(encoding="utf-8")), encoding="utf-8")
    return target


def anchored(text: str) -> str:
    """The requirements, each paragraph with its name as an anchor: ``requirements.html#json.2``."""
    return re.sub(r"^- \*\*([a-z-]+\.\d+)\*\*", r'- <a id="\1"></a>**\1**', text, flags=re.MULTILINE)


def build(pages: Path, output: Path, doctrees: Path) -> None:
    """Run Sphinx. Raises EnvironmentLacksError where it is not installed, TfbError where a page is faulty."""
    try:
        from sphinx.application import Sphinx
    except ImportError as error:
        raise EnvironmentLacksError(
            f"{error.name} is missing: ./tfb check brings it (requirements-dev.lock)"
        ) from error
    warnings = _Warnings()
    app = Sphinx(
        pages, None, output, doctrees, "html", confoverrides=SETTINGS, status=None, warning=warnings, freshenv=True
    )
    app.build(force_all=True)
    if app.statuscode or warnings.lines:
        raise TfbError("the documentation has faults:\n" + "\n".join(warnings.lines))


class _Warnings(io.StringIO):
    """What Sphinx warns of, without the temporary folder."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def write(self, text: str) -> int:
        """Take a warning."""
        if line := re.sub(r"\x1b\[[\d;]*m", "", text).strip():
            self.lines.append(re.sub(r"\S*/pages/", "", line))
            print(self.lines[-1], file=sys.stderr)
        return len(text)


if __name__ == "__main__":
    main()
