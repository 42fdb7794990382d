"""``./tfb init``: writes the tfb.toml of a service after looking at its folder."""

import json
import os
import re
import tomllib
from collections.abc import Iterator
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
{started}
# ready = "/health"        # answers 200 once it is up; without it the first request's path is asked
# env = {{ LOG_LEVEL = "warning" }}
{language}
# postgres = true          # start one, an empty database a process: DBHOST, DBPORT, DBNAME, DBUSER, DBPASS
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
# @app.get("/x"), app.get('/x', …), @GetMapping("/x"), HandleFunc("GET /x", …); not one with a parameter, {id} or :id.
ROUTE = re.compile(r"""(?:\.get|\bGetMapping|\bHandle(?:Func)?|\.route)\(\s*["'](?:GET )?(/[\w./-]*)["']""")
# app = FastAPI(…), api: Flask = Flask(…), application = create_app()
APPLICATION = re.compile(
    r"^(\w+)(?: *: *[\w.]+)? *= *(?:\w+\.)?(?:FastAPI|Starlette|Litestar|Quart|Sanic|Flask|\w+_app)\(", re.MULTILINE
)
KNOWN_NODE = re.compile(r"(\w+=\S* )*(node|npm|npx|yarn|pnpm|bun|deno)( |$)|\w+=")  # others are of node_modules/.bin


def command(
    folder: Annotated[str, Parameter(help="of the service; default: this one", metavar="DIR")] = ".",
) -> int:
    """Write the tfb.toml of a service, for ./tfb compare --base; look it over before you use it."""
    place = Path(folder).resolve()
    if not place.is_dir():
        raise UsageError(f"{place} is not a folder")
    if (place / FILE).exists():
        raise UsageError(f"{place / FILE} is there already: delete it first to have it written anew")
    kind, started, language = _look(place)
    (place / FILE).write_text(
        TEMPLATE.format(
            name="".join(c if c.isalnum() or c in "-._" else "-" for c in place.name).strip("-._") or "service",
            started=started,
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


def _look(place: Path) -> tuple[str, str, str]:
    """What it is, the lines that say how it is built and started, and its language where that compiles late."""
    names = {path.name for path in place.iterdir()}
    if "package.json" in names:
        scripts = _read(place / "package.json", "scripts")
        build = "npm ci" if "package-lock.json" in names else "npm install"
        build += " && npm run build" if "build" in scripts else ""
        start = str(scripts.get("start", "node server.js")).replace('"', "'")
        return "Node.js", _command(build, start if KNOWN_NODE.match(start) else f"npx {start}"), ""
    for wanted, what in (("requirements.txt", "-r requirements.txt"), ("pyproject.toml", ".")):
        if wanted in names:
            server, flags, application = _python(place, installed=what == ".")
            also = "" if server in _text(place / wanted) else f" {server}"
            build = f"python3 -m venv .venv && .venv/bin/pip install -q {what}{also}"
            return "Python", _command(build, f".venv/bin/python -m {server} {flags} {application}"), ""
    if "go.mod" in names:
        mains = [path.parent for path in sorted(place.glob("cmd/*/*.go")) if "package main" in _text(path)]
        root = any("package main" in _text(path) for path in place.glob("*.go"))
        package = "." if root or not mains else f"./{mains[0].relative_to(place)}"
        return "Go", _command(f"go build -o server {package}", "./server"), ""
    if "Cargo.toml" in names:
        name = _read(place / "Cargo.toml", "package").get("name", "server")
        return "Rust", _command("cargo build --release", f"target/release/{name}"), ""
    if "pom.xml" in names:
        maven = "./mvnw" if "mvnw" in names else "mvn"
        quarkus = "quarkus" in _text(place / "pom.xml")
        return "Maven", _command(f"{maven} -q package -DskipTests", _jar("target", "*.jar", quarkus)), "java"
    if gradle := sorted(names & {"build.gradle", "build.gradle.kts"}):
        quarkus = "quarkus" in _text(place / gradle[0])
        task = "quarkusBuild" if quarkus else "bootJar"
        return "Gradle", _command(f"./gradlew -q {task}", _jar("build", "libs/*.jar", quarkus)), "java"
    if "Dockerfile" in names:
        port = re.search(r"^EXPOSE +(\d+)", _text(place / "Dockerfile"), re.MULTILINE)
        lines = 'dockerfile = "Dockerfile"   # listens on 0.0.0.0 at this port; PORT in its environment, too\nport = '
        return "a Dockerfile", lines + (port[1] if port else "8080"), ""
    return "a service of unknown kind", _command("", "./server --port $PORT"), ""


def _command(build: str, start: str) -> str:
    build = f'build = "{build}"' if build else '# build = "make"'
    return f'{build}\nstart = "{start}"   # listens on 127.0.0.1 at $PORT, in the foreground'


def _jar(folder: str, jar: str, quarkus: bool) -> str:
    """How the jar that a build leaves is started: Quarkus's, or one as Spring makes it."""
    if quarkus:
        return f"java -Dquarkus.http.port=$PORT -jar {folder}/quarkus-app/quarkus-run.jar"
    return f"java -jar {folder}/{jar} --server.port=$PORT"


def _python(place: Path, *, installed: bool) -> tuple[str, str, str]:
    """The server of its kind, its flags, and the application; ``installed``: a module below src is one of its own."""
    gunicorn = ("gunicorn", "-b 127.0.0.1:$PORT")
    for path in sorted(place.glob("*/wsgi.py")):
        return *gunicorn, f"{path.parent.name}.wsgi"
    application, flask = "app:app", False
    for path in _programs(place):
        text = _text(path) if path.suffix == ".py" else ""
        flask = flask or "flask" in text.lower()
        if found := APPLICATION.search(text):
            parts = path.relative_to(place).with_suffix("").parts
            own = parts[1:] if installed and parts[0] == "src" else parts
            application = f"{'.'.join(part for part in own if part != '__init__')}:{found[1]}"
            break
    return *(gunicorn if flask else ("uvicorn", "--port $PORT --log-level warning")), application


PROGRAMS = (".java", ".kt", ".scala", ".js", ".mjs", ".cjs", ".ts", ".py", ".go", ".rs", ".rb", ".php", ".cs")
NOT_ITS_OWN = ("node_modules", "venv", "target", "vendor", "build", "dist", "out", "bin", "obj", "test", "tests")


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8", errors="replace")


def _read(file: Path, section: str) -> dict[str, object]:
    """A section of a JSON or TOML file; nothing where there is none."""
    try:
        text = file.read_text(encoding="utf-8")
        found = (json.loads(text) if file.suffix == ".json" else tomllib.loads(text))[section]
    except (OSError, ValueError, LookupError, TypeError):
        return {}
    return found if isinstance(found, dict) else {}


def _path(place: Path) -> str:
    """The first GET without a parameter: of an OpenAPI document, or as programs declare routes; else the root."""
    for name in ("openapi.json", "swagger.json", "docs/openapi.json"):
        for path, own in _read(place / name, "paths").items():
            if "{" not in path and isinstance(own, dict) and "get" in own:
                return path
    routes = (route for path in _programs(place) for route in ROUTE.findall(_text(path)))
    return next(routes, "/")


def _programs(place: Path) -> Iterator[Path]:
    """Its own programs, without tests and what builds and package managers put there."""
    for folder, folders, names in os.walk(place):
        folders[:] = sorted(name for name in folders if name not in NOT_ITS_OWN and not name.startswith("."))
        files = (Path(folder) / name for name in sorted(names))
        yield from (path for path in files if path.suffix in PROGRAMS and path.is_file())
