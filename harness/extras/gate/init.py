"""``./tfb init``: writes the tfb.toml of a service after looking at its folder."""

import json
import os
import re
from collections.abc import Iterator, Mapping, Set
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from harness.errors import Exit, UsageError
from harness.paths import PROGRAM
from harness.plan.service import FILE
from harness.records import confined, safe_read

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

# One block for each kind of request, and what a right answer is. Measured one by one; all: together.
[[request]]
name = "root"
path = "{path}"             # a path that answers: look at it
# weight = 1.0             # share in all
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
# @app.get("/x"), app.get('/x', …), @GetMapping("/x"), MapGet("/x", …), HandleFunc("GET /x", …), get '/x' do; not one
# with a parameter, {id} or :id.
ROUTE = re.compile(
    r"""(?:(?:\.get|\bGetMapping|\.MapGet|\bHandle(?:Func)?|\.route)\(|^\s*get )\s*["'](?:GET )?(/[\w./-]*)["']""",
    re.MULTILINE,
)
# app = FastAPI(…), api: Flask = Flask(…), application = create_app()
APPLICATION = re.compile(
    r"^(\w+)(?: *: *[\w.]+)? *= *(?:\w+\.)?(?:FastAPI|Starlette|Litestar|Quart|Sanic|Flask|\w+_app)\(", re.MULTILINE
)
KNOWN_NODE = re.compile(r"(\w+=\S* )*(node|npm|npx|yarn|pnpm|bun|deno)( |$)")  # others are of node_modules/.bin
LOCKS = {"pnpm-lock.yaml": "pnpm", "yarn.lock": "yarn", "bun.lock": "bun", "bun.lockb": "bun"}
TASKS = {"quarkus": "quarkusBuild", "micronaut": "shadowJar", "shadow": "shadowJar"}  # of Gradle
OTHERS = {  # a file -> what it is, and how that is built and started
    "*.csproj": (".NET", "dotnet publish -c Release -o out", "dotnet out/{name}.dll --urls http://127.0.0.1:$PORT"),
    "Gemfile": ("Ruby", "bundle install --quiet", "bundle exec puma -b tcp://127.0.0.1:$PORT"),
}
# Of a compose file: a service that is built here, and the port within its container that a line like "8080:80" names.
BUILT = re.compile(r"^  ([\w.-]+):\n(?:    .*\n|\n)*?    build:", re.MULTILINE)
PUBLISHED = re.compile(r"^ +- [\"']?(?:[\w.]+:)*(\d+)(?:/tcp)?[\"']?$", re.MULTILINE)


def command(
    folder: Annotated[str, Parameter(help="of the service; default: this one", metavar="DIR")] = ".",
) -> int:
    """Write the tfb.toml of a service, for ./tfb compare --base; look it over before you use it."""
    place = Path(folder).resolve()
    if not place.is_dir():
        raise UsageError(f"{place} is not a folder")
    if os.path.lexists(place / FILE):
        raise UsageError(f"{place / FILE} is there already: delete it first to have it written anew")
    kind, started, language = _look(place)
    text = TEMPLATE.format(
        name="".join(c if c.isalnum() or c in "-._" else "-" for c in place.name).strip("-._") or "service",
        started=started,
        language=f'language = "{language}"' if language else '# language = "java"       # a JIT warms up longer',
        path=_path(place),
        program=PROGRAM,
    )
    try:
        confined.write(place, FILE, text.encode(), 0o644)
    except OSError as error:
        raise UsageError(f"{place / FILE} cannot be written: {error.strerror}") from error
    print(
        f"{place / FILE}: for {kind}. Next: see that start and requests are right, then {PROGRAM} compare --base main"
    )
    return Exit.OK


def _look(place: Path) -> tuple[str, str, str]:
    """What it is, the lines that say how it is built and started, and its language where that compiles late."""
    names = {path.name for path in place.iterdir()}
    others = {mark for mark in OTHERS if any(place.glob(mark))}
    if "package.json" in names:
        scripts = _scripts(place)
        if "start" in scripts or not (others or names & {"requirements.txt", "pyproject.toml", "go.mod", "manage.py"}):
            return "Node.js", _node(place, scripts), ""
    if found := _python(place, names):
        return "Python", _command(*found), ""
    if "go.mod" in names:
        mains = [path.parent for path in sorted(place.glob("cmd/*/*.go")) if "package main" in _text(path)]
        root = any("package main" in _text(path) for path in place.glob("*.go"))
        package = "." if root or not mains else f"./{mains[0].relative_to(place)}"
        return "Go", _command(f"go build -o server {package}", "./server"), ""
    if "Cargo.toml" in names:
        crate = re.search(r'^name *= *"([^"]+)"', _text(place / "Cargo.toml"), re.MULTILINE)
        return "Rust", _command("cargo build --release", f"target/release/{crate[1] if crate else 'server'}"), ""
    if "pom.xml" in names:
        maven = "./mvnw" if "mvnw" in names else "mvn"
        start = _jar("target", "*.jar", _text(place / "pom.xml"))
        return "Maven", _command(f"{maven} -q package -DskipTests", start), "java"
    if gradle := sorted(names & {"build.gradle", "build.gradle.kts"}):
        text = _text(place / gradle[0])
        task = next((task for kind, task in TASKS.items() if kind in text), "bootJar")
        jar = "libs/*-all.jar" if task == "shadowJar" else "libs/*.jar"
        return "Gradle", _command(f"./gradlew -q {task}", _jar("build", jar, text)), "java"
    for mark in sorted(others):
        kind, build, start = OTHERS[mark]
        return kind, _command(build, start.format(name=next(place.glob(mark)).stem)), ""
    composes = sorted(names & {"compose.yaml", "compose.yml", "docker-compose.yaml", "docker-compose.yml"})
    if composes and (own := BUILT.search(text := _text(place / composes[0]))):
        port = PUBLISHED.search(text, own.start())
        lines = f'compose = "{composes[0]}"\nservice = "{own[1]}"   # the one whose CPU counts\nport = '
        return "a compose file", lines + (port[1] if port else "8080"), ""
    if "Dockerfile" in names:
        port = re.search(r"^EXPOSE +(\d+)", _text(place / "Dockerfile"), re.MULTILINE)
        lines = 'dockerfile = "Dockerfile"   # listens on 0.0.0.0 at this port; PORT in its environment, too\nport = '
        return "a Dockerfile", lines + (port[1] if port else "8080"), ""
    return "a service of unknown kind", _command("", "./server --port $PORT"), ""


def _node(place: Path, scripts: Mapping[str, object]) -> str:
    """By the package manager whose lock file is there, or above it in a workspace."""
    above = [place, *place.parents[:3]]
    tool = next((tool for lock, tool in LOCKS.items() if any((up / lock).exists() for up in above)), "npm")
    build = "npm ci" if (place / "package-lock.json").exists() else f"{tool} install"
    build += f" && {tool} run build" if "build" in scripts else ""
    start = str(scripts.get("start", "node server.js"))
    plain = KNOWN_NODE.match(start) and not any(word in start for word in ("&&", ";", '"', "\\"))
    return _command(build, start if plain else f"{tool} run start")


def _command(build: str, start: str) -> str:
    build = f"build = {_quoted(build)}" if build else '# build = "make"'
    return f"{build}\nstart = {_quoted(start)}   # listens on 127.0.0.1 at $PORT, in the foreground"


def _quoted(text: str) -> str:
    """Return a text as a string of TOML, which has JSON's escapes."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _jar(folder: str, jar: str, built_by: str) -> str:
    """How the jar that a build leaves is started: Quarkus's, Micronaut's, or one as Spring makes it."""
    if "quarkus" in built_by:
        return f"java -Dquarkus.http.port=$PORT -jar {folder}/quarkus-app/quarkus-run.jar"
    if "micronaut" in built_by:
        return f"java -Dmicronaut.server.port=$PORT -jar {folder}/{jar}"
    return f"java -jar {folder}/{jar} --server.port=$PORT"


def _python(place: Path, names: Set[str]) -> tuple[str, str] | None:
    """How it is built, by the lock file that is there, and started, by a server of its kind; None: it is none."""
    wanted = next((name for name in ("requirements.txt", "pyproject.toml") if name in names), None)
    if wanted is None:
        return None
    asked = _text(place / wanted)
    server, application = _application(place, asked, installed=wanted == "pyproject.toml")
    also = "" if server in asked else server
    if "uv.lock" in names:
        build = "uv sync --frozen" + (f" && uv pip install -q {also}" if also else "")
    elif "poetry.lock" in names:
        build = "POETRY_VIRTUALENVS_IN_PROJECT=true poetry install"
        build += f" && poetry run pip install {also}" if also else ""
    else:
        what = "." if wanted == "pyproject.toml" else f"-r {wanted}"
        build = f"python3 -m venv .venv && .venv/bin/pip install -q {what} {also}".rstrip()
    flags = "-b 127.0.0.1:$PORT" if server == "gunicorn" else "--port $PORT --log-level warning"
    return build, f".venv/bin/python -m {server} {flags} {application}"


def _application(place: Path, asked: str, *, installed: bool) -> tuple[str, str]:
    """The server of its kind, and the application; ``installed``: a module below src is one of its own."""
    for path in sorted(place.glob("*/wsgi.py")):
        return "gunicorn", f"{path.parent.name}.wsgi"
    flask = "flask" in asked.lower()
    for path in _programs(place):
        text = _text(path) if path.suffix == ".py" else ""
        flask = flask or "flask" in text.lower()
        if found := APPLICATION.search(text):
            parts = path.relative_to(place).with_suffix("").parts
            own = parts[1:] if installed and parts[0] == "src" else parts
            module = ".".join(part for part in own if part != "__init__")
            wsgi = "Flask(" in found[0] or (flask and "_app(" in found[0])
            return "gunicorn" if wsgi else "uvicorn", f"{module}:{found[1]}"
    return "gunicorn" if flask else "uvicorn", "app:app"


PROGRAMS = (".java", ".kt", ".scala", ".js", ".mjs", ".cjs", ".ts", ".py", ".go", ".rs", ".rb", ".php", ".cs")
NOT_ITS_OWN = (
    "node_modules",
    "venv",
    "target",
    "vendor",
    "build",
    "dist",
    "out",
    "bin",
    "obj",
    "test",
    "tests",
    "spec",
)


def _text(file: Path) -> str:
    """Return the text of a file; empty for a pipe, a device, and a file that is too large or cannot be read."""
    try:
        return safe_read.read(file, safe_read.MAX_TEXT_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""


def _scripts(place: Path) -> dict[str, object]:
    """Of package.json; nothing where there are none."""
    try:
        found = json.loads(_text(place / "package.json"))["scripts"]
    except (ValueError, LookupError, TypeError):
        return {}
    return found if isinstance(found, dict) else {}


def _path(place: Path) -> str:
    """The first GET without a parameter, as programs declare routes; else the root."""
    return next((route for path in _programs(place) for route in ROUTE.findall(_text(path))), "/")


def _programs(place: Path) -> Iterator[Path]:
    """Its own programs, without tests and what builds and package managers put there."""
    for folder, folders, names in os.walk(place):
        folders[:] = sorted(name for name in folders if name not in NOT_ITS_OWN and not name.startswith("."))
        files = (Path(folder) / name for name in sorted(names))
        yield from (path for path in files if path.suffix in PROGRAMS and path.is_file())
