"""``./tfb init``: writes the tfb.toml of a service after looking at its folder."""

import json
import os
import re
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from harness.errors import Exit, UsageError
from harness.paths import PROGRAM
from harness.plan.service import FILE

TEMPLATE = """\
# What {program} compare needs to know of this service. Commands run in this folder, in a shell.

[service]
name = "{name}"
{build}
start = "{start}"   # listens on 127.0.0.1 at $PORT, in the foreground
# ready = "/health"        # answers 200 once it is up; without it the first request's path is asked
# env = {{ LOG_LEVEL = "warning" }}
{language}
# postgres = true          # start one for it: DBHOST, DBPORT, DBNAME, DBUSER, DBPASS in its environment
# connections = 32         # of the load

# One block for each kind of request, and what a right answer is. Each is measured by itself, and all as a mix.
[[request]]
name = "root"
path = "{path}"             # a path that answers: look at it
# weight = 1.0             # share in the mix
[request.expect]
status = 200
# content_type = "application/json"
# json = {{ ok = true }}     # these keys are there and equal
# json_schema = "schema.json"
# size = [2, 100000]       # bytes of the body

# [[request]]
# name = "item"
# method = "POST"
# path = "/items/{{id}}"
# headers = {{ Authorization = "Bearer test" }}
# json = {{ quantity = "{{quantity}}" }}
# [request.values]
# id = {{ range = [1, 1000] }}
# quantity = {{ list = [1, 2, 3] }}
"""


def command(
    folder: Annotated[str, Parameter(help="of the service; default: this one", metavar="DIR")] = ".",
    *,
    force: Annotated[bool, Parameter(help="write it anew where there is one")] = False,
) -> int:
    """Write the tfb.toml of a service, for ./tfb compare --base; look it over before you use it."""
    place = Path(folder).resolve()
    if not place.is_dir():
        raise UsageError(f"{place} is not a folder")
    if (place / FILE).exists() and not force:
        raise UsageError(f"{place / FILE} is there already: --force writes it anew")
    kind, build, start, language = next(filter(None, (look(place) for look in LOOKS)), UNKNOWN)
    (place / FILE).write_text(
        TEMPLATE.format(
            name="".join(c if c.isalnum() or c in "-._" else "-" for c in place.name).strip("-._") or "service",
            build=f'build = "{build}"' if build else '# build = "make"',
            start=start,
            language=f'language = "{language}"' if language else '# language = "java"       # a JIT warms up longer',
            path=_path(place),
            program=PROGRAM,
        ),
        encoding="utf-8",
    )
    print(
        f"{place / FILE}: for {kind}. Next: see that start and requests are right, then {PROGRAM} compare --base main"
    )
    return Exit.OK


# @app.get("/x"), app.get('/x', …), @GetMapping("/x"), HandleFunc("GET /x", …); not one with a parameter, {id} or :id.
ROUTE = re.compile(r"""(?:\.get|\bGetMapping|\bHandle(?:Func)?|\.route)\(\s*["'](?:GET )?(/[\w./-]*)["']""")
Found = tuple[str, str, str, str]  # what it is, how it is built and started, and its language where that compiles late
UNKNOWN: Found = ("a service of unknown kind", "", "./server --port $PORT", "")


def _node(place: Path) -> Found | None:
    if not (place / "package.json").is_file():
        return None
    try:
        scripts = json.loads((place / "package.json").read_text(encoding="utf-8")).get("scripts", {})
    except (ValueError, AttributeError):
        scripts = {}
    build = "npm ci" if (place / "package-lock.json").is_file() else "npm install"
    build += " && npm run build" if "build" in scripts else ""
    return "Node.js", build, str(scripts.get("start", "node server.js")).replace('"', "'"), ""


def _python(place: Path) -> Found | None:
    requirements, project = place / "requirements.txt", place / "pyproject.toml"
    if not requirements.is_file() and not project.is_file():
        return None
    what = "-r requirements.txt" if requirements.is_file() else "."
    text = "".join(path.read_text(encoding="utf-8", errors="replace") for path in sorted(place.glob("*.py")))
    module = next((p.stem for p in sorted(place.glob("*.py")) if "app = " in p.read_text(errors="replace")), "app")
    server = f"-m gunicorn -b 127.0.0.1:$PORT {module}:app" if "flask" in text.lower() else ""
    server = server or f"-m uvicorn {module}:app --port $PORT --log-level warning"
    return "Python", f"python3 -m venv .venv && .venv/bin/pip install -q {what}", f".venv/bin/python {server}", ""


def _go(place: Path) -> Found | None:
    return ("Go", "go build -o server .", "./server", "") if (place / "go.mod").is_file() else None


def _rust(place: Path) -> Found | None:
    if not (place / "Cargo.toml").is_file():
        return None
    try:
        name = tomllib.loads((place / "Cargo.toml").read_text(encoding="utf-8"))["package"]["name"]
    except (ValueError, LookupError):
        name = "server"
    return "Rust", "cargo build --release", f"target/release/{name}", ""


def _jvm(place: Path) -> Found | None:
    if (place / "pom.xml").is_file():
        return "Maven", "mvn -q package -DskipTests", "java -jar target/app.jar --server.port=$PORT", "java"
    if any((place / name).is_file() for name in ("build.gradle", "build.gradle.kts")):
        return "Gradle", "./gradlew -q bootJar", "java -jar build/libs/app.jar --server.port=$PORT", "java"
    return None


PROGRAMS = (".java", ".kt", ".scala", ".js", ".mjs", ".cjs", ".ts", ".py", ".go", ".rs", ".rb", ".php", ".cs")
NOT_ITS_OWN = ("node_modules", "target", "vendor", "build", "dist", "out", "bin", "obj", "test", "tests")
LOOKS: tuple[Callable[[Path], Found | None], ...] = (_node, _python, _go, _rust, _jvm)


def _path(place: Path) -> str:
    """The first GET without a parameter: of an OpenAPI document, or as programs declare routes; else the root."""
    for name in ("openapi.json", "swagger.json", "docs/openapi.json"):
        if (place / name).is_file():
            try:
                paths = json.loads((place / name).read_text(encoding="utf-8"))["paths"]
                return next(str(path) for path, own in paths.items() if "get" in own and "{" not in path)
            except (ValueError, LookupError, StopIteration, AttributeError, TypeError):
                break
    routes = (route for path in _programs(place) for route in ROUTE.findall(path.read_text(errors="replace")))
    return next(routes, "/")


def _programs(place: Path) -> Iterator[Path]:
    """Its own programs, without tests and what builds and package managers put there."""
    for folder, folders, names in os.walk(place):
        folders[:] = sorted(name for name in folders if name not in NOT_ITS_OWN and not name.startswith("."))
        files = (Path(folder) / name for name in sorted(names))
        yield from (path for path in files if path.suffix in PROGRAMS and path.is_file())
