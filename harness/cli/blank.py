"""``./tfb new NAME --blank``: a folder in any language, its routes to fill in with the requirement beside each."""

import json
import re
import shlex
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from harness.paths import REPOSITORY
from harness.plan.discovery import CONFIG_FILE
from harness.plan.testtypes import TestType
from harness.plan.testtypes.registry import TEST_TYPES
from harness.verify.checks.registry import CHECKS

PATHS = {
    "json": "/json",
    "plaintext": "/plaintext",
    "db": "/db",
    "query": "/queries?queries=",
    "fortune": "/fortunes",
    "update": "/updates?queries=",
}
PARAGRAPH = re.compile(
    r"^- \*\*([a-z-]+\.\d+)\*\* (?:\((?:TE|data|ours)\) )?(.*?)(?=^- \*\*|^#|^\S|\Z)", re.MULTILINE | re.DOTALL
)
ENVIRONMENT = """\
HOST, PORT             where to listen: all interfaces and 8080 where they are not set
DBHOST, DBPORT         PostgreSQL: tfb-database and 5432 where they are not set
DBNAME, DBUSER, DBPASS hello_world, benchmarkdbuser, benchmarkdbpass where they are not set
Use as many workers as CPUs that the process may run on; stop within 5 s of SIGTERM. PostgreSQL takes 500
connections of all servers together: a pool of 8 to 20 a CPU is usual, or one connection a worker that pipelines.
Tables: world (id 1 to 10000, randomnumber 1 to 10000), fortune (id, message): toolset/database/"""
IGNORED = "# no part of the image, and no reason to build it again\ntarget\nnode_modules\n.venv\n*.md\n*.dockerfile\n"
# The environment is made anew when what it is made of has changed: what was taken out of the lock must not stay.
VENV = (
    "cmp -s requirements.lock .venv/made-of || { python3 -m venv --clear .venv && "
    ".venv/bin/pip install -q -r requirements.lock && cp requirements.lock .venv/made-of; }"
)


@dataclass(frozen=True, kw_only=True)
class Start:
    """How a language's folder begins; a name in braces is the implementation's."""

    source: str  # the file that gets the routes
    comment: str = "//"
    opening: str = ""  # what stands before the first comment
    requires: Mapping[str, str] = field(default_factory=dict)
    build: tuple[str, ...] = ()
    run: tuple[str, ...]
    packages: str = ""  # of Debian, for the Dockerfile
    files: Mapping[str, str] = field(default_factory=dict)  # a manifest, where a language cannot do without


STARTS: dict[str, Start] = {
    "Go": Start(
        source="main.go",
        requires={"go": ">=1.24"},
        build=("go", "build", "-trimpath", "-o", "target/server", "."),
        run=("target/server",),
        packages="golang",
        files={"go.mod": "module {name}\n\ngo 1.24\n"},
    ),
    "Rust": Start(
        source="src/main.rs",
        requires={"cargo": ">=1.85"},
        build=("cargo", "build", "--release", "--locked"),
        run=("target/release/{name}",),
        packages="cargo",
        files={"Cargo.toml": '[package]\nname = "{name}"\nversion = "0.1.0"\nedition = "2024"\n\n[dependencies]\n'},
    ),
    "Python": Start(
        source="app.py",
        comment="#",
        requires={"python": ">=3.11"},
        build=("sh", "-c", VENV),
        run=(".venv/bin/python", "app.py"),
        packages="python3 python3-venv",
        files={"requirements.lock": "# the framework and its driver, pinned with hashes\n"},
    ),
    "Ruby": Start(
        source="app.rb",
        comment="#",
        requires={"ruby": ">=3.3", "bundle": ">=2"},
        build=("bundle", "install", "--quiet"),
        run=("bundle", "exec", "ruby", "app.rb"),
        packages="ruby ruby-dev bundler build-essential libpq-dev",
        files={"Gemfile": "# its server and pg; commit Gemfile.lock\n", ".bundle/config": "BUNDLE_PATH: vendor\n"},
    ),
    "PHP": Start(
        source="server.php",
        opening="<?php\n",
        requires={"php": ">=8.3"},
        run=("php", "server.php"),
        packages="php-cli php-pgsql",
    ),
}
ALIASES = {"c#": "CSharp", ".net": "CSharp", "dotnet": "CSharp", "cpp": "C++", "golang": "Go"}
ANY = Start(source="ROUTES", comment="#", run=("./server",))


def language_of(text: str) -> str:
    """The folder of a language: as this page or ``STARTS`` spells it, else as it was written."""
    known = {name.lower(): name for name in STARTS} | ALIASES
    return known.get(text.lower(), text)


def make(target: Path, name: str, language: str) -> None:
    """Write the folder."""
    start = STARTS.get(language, ANY)
    texts = {
        CONFIG_FILE: json.dumps(config(name, language, start), indent=2) + "\n",
        f"{name}.dockerfile": dockerfile(name, start),
        "README.md": readme(name, start),
        ".dockerignore": IGNORED,
        start.source: start.opening + routes(start.comment),
        **{file: text.replace("{name}", name) for file, text in start.files.items()},
    }
    for file, text in texts.items():
        path = target / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def config(name: str, language: str, start: Start) -> dict[str, object]:
    """benchmark_config.json with the six scored tests."""
    local: dict[str, object] = {"requires": dict(start.requires)} if start.requires else {}
    if start.build:
        local["build"] = [*start.build]
    local["run"] = [word.replace("{name}", name) for word in start.run]
    entry = {
        **{TEST_TYPES[kind].url_key: path for kind, path in PATHS.items()},
        "approach": "Realistic",
        "classification": "Micro",
        "database": "Postgres",
        "orm": "Raw",
        "framework": name,
        "language": language,
        "display_name": name,
        "local": local,
    }
    return {"framework": name, "maintainers": [], "tests": [{"default": entry}]}


def dockerfile(name: str, start: Start) -> str:
    """Debian's packages, not as root, with caches of its own; who knows the language will choose better."""
    run = json.dumps([word.replace("{name}", name) for word in start.run])
    packages = f"ca-certificates {start.packages}" if start.packages else "…"
    install = (
        f"RUN apt-get update && apt-get install -y --no-install-recommends {packages} && rm -rf /var/lib/apt/lists/*"
    )
    lines = ["FROM debian:trixie-slim", install if start.packages else f"# {install}", "WORKDIR /app", "COPY . ."]
    if start.build:  # what the build fetches stays in a mount, which is its home
        lines.append(f"RUN --mount=type=cache,target=/cache HOME=/cache {shlex.join(start.build)}")
    return "\n".join([*lines, "EXPOSE 8080", "USER nobody", f"CMD {run}"]) + "\n"


def readme(name: str, start: Start) -> str:
    """What is to be done, in order."""
    return (
        f"# {name}\n\nWhat it shows: …\n\nStill to do: the routes of `{start.source}`, one test after the other:\n\n"
        f"    ./tfb verify {name} --runtime local --type json --watch\n\nand then `plaintext db query update fortune`. "
        "A route that is not written has no `_url`\nin `benchmark_config.json`.\n\n"
        f"Run it alone: `./tfb debug {name}`\n\nWhat was tuned, and what the measurement said: …\n"
    )


def routes(comment: str) -> str:
    """A comment a route, with what docs/requirements.md says of it."""
    known = dict(paragraphs())
    everywhere = [name for name in known if name.startswith("http.")]
    lines = [*ENVIRONMENT.splitlines(), "", "Of every answer:", *_written(known, everywhere)]
    for kind, path in PATHS.items():
        lines += ["", f"---- GET {path}{'N' if path.endswith('=') else ''}"]
        lines += _written(known, rules(TEST_TYPES[kind]))
    return "\n".join(f"{comment} {line}".rstrip() for line in lines) + "\n"


def rules(test: TestType) -> tuple[str, ...]:
    """The paragraphs that verification checks of a test type beside those of every answer, in the page's order."""
    checked = {check.rule for check in CHECKS.values() if check.applies(test.name)}
    return tuple(name for name, _ in paragraphs() if name in checked and not name.startswith(("http.", "load.")))


def paragraphs() -> Iterator[tuple[str, str]]:
    """Name and text of every paragraph of docs/requirements.md, without the checks that enforce it."""
    page = (REPOSITORY / "docs" / "requirements.md").read_text(encoding="utf-8")
    for name, text in PARAGRAPH.findall(page):
        yield name, " ".join(text.split()).rpartition(" — ")[0] or " ".join(text.split())


def _written(known: Mapping[str, str], names: Iterable[str]) -> Iterator[str]:
    for name in names:
        yield from textwrap.wrap(
            f"{name}: {known[name]}", 100, initial_indent="  ", subsequent_indent="      ", break_on_hyphens=False
        )
