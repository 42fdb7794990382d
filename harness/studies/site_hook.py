"""MkDocs hooks that add pages from outside docs/, and turn links to other repository files into GitHub URLs."""

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

OUTSIDE = {  # path in the repository -> path in the site
    "CHANGELOG.md": "changelog.md",
    "CODE_OF_CONDUCT.md": "code-of-conduct.md",
    "CONTRIBUTING.md": "contributing.md",
    "README.md": "index.md",
    "SECURITY.md": "security.md",
    "results/README.md": "results.md",
}
LINK = re.compile(r"(!?)\[((?:[^\[\]]|!?\[[^\]]*\]\([^)]*\))*)\]\(([^)#\s:]*)(#[^)]*)?\)")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Add a tab for the published rounds, which the workflow ``pages.yml`` adds to the site."""
    if config.site_url:
        config.nav = [*(config.nav or []), {"Rounds": posixpath.join(config.site_url, "rounds/")}]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages in ``OUTSIDE`` to the site."""
    root = Path(config.docs_dir).parent
    for source, target in OUTSIDE.items():
        files.append(File.generated(config, target, abs_src_path=str(root / source)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Rewrite a page's relative links, which work in the repository, so that they also work on the site."""
    del files
    page_path = page.file.src_uri
    source = next((name for name, target in OUTSIDE.items() if target == page_path), f"docs/{page_path}")

    def adapted(link: re.Match[str]) -> str:
        image, text, path, anchor = link[1], LINK.sub(adapted, link[2]), link[3], link[4] or ""
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), path)) if path else source
        if target in OUTSIDE or target.startswith("docs/"):
            inside = OUTSIDE.get(target) or target.removeprefix("docs/")
            return f"{image}[{text}]({posixpath.relpath(inside, posixpath.dirname(page_path) or '.')}{anchor})"
        if target.startswith("../../"):  # a GitHub page that is not a file, such as the list of issues
            return f"{image}[{text}]({config.repo_url}/{target[6:]}{anchor})" if config.repo_url else ""
        return f"{image}[{text}]({config.repo_url}/blob/main/{target}{anchor})" if config.repo_url else text

    return LINK.sub(adapted, markdown)
