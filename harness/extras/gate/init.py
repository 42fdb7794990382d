"""``./tfb init``: writes a tfb.toml for a service, based on the files in its folder."""

import json
import os
import re
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from harness.errors import Exit, UsageError
from harness.paths import PROGRAM
from harness.plan.service import FILE
from harness.records import confined, safe_read

TEMPLATE = """\
# Describes this service for {program} compare. Commands run in this folder, in a shell.

[service]
name = "{name}"
{started}
# ready = "/health"        # sends status 200 when the service is ready; default: path of the first request
# env = {{ LOG_LEVEL = "warning" }}
{language}
# postgres = true          # start PostgreSQL with an empty database: DBHOST, DBPORT, DBNAME, DBUSER, DBPASS
# connections = 32         # of the load

# One block for each kind of request, with the expected response. Requests are measured one after another.
[[request]]
name = "root"
path = "{path}"             # check this path
# weight = 1.0             # share in the total of all requests
[request.expect]
status = 200
# content_type = "application/json"
# json = {{ ok = true }}     # the response must contain these members
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
# Route declarations without parameters such as {id} or :id, for example @app.get("/x"), @GetMapping("/x"),
# HandleFunc("GET /x", …) and get '/x' do.
ROUTE = re.compile(
    r"""(?:(?:\.get|\bGetMapping|\.MapGet|\bHandle(?:Func)?|\.route)\(|^\s*get )\s*["'](?:GET )?(/[\w./-]*)["']""",
    re.MULTILINE,
)
# Python applications, for example app = FastAPI(…), api: Flask = Flask(…) and application = create_app().
APPLICATION = re.compile(
    r"^(\w+)(?: *: *[\w.]+)? *= *(?:\w+\.)?(?:FastAPI|Starlette|Litestar|Quart|Sanic|Flask|\w+_app)\(", re.MULTILINE
)
# All other commands are in node_modules/.bin.
KNOWN_NODE = re.compile(r"(\w+=\S* )*(node|npm|npx|yarn|pnpm|bun|deno)( |$)")
LOCKS = {"pnpm-lock.yaml": "pnpm", "yarn.lock": "yarn", "bun.lock": "bun", "bun.lockb": "bun"}
GRADLE_TASKS = {"quarkus": "quarkusBuild", "micronaut": "shadowJar", "shadow": "shadowJar"}  # plugin -> task
OTHERS = {  # build file -> (kind, build command, start command)
    "*.csproj": (".NET", "dotnet publish -c Release -o out", "dotnet out/{name}.dll --urls http://127.0.0.1:$PORT"),
    "Gemfile": ("Ruby", "bundle install --quiet", "bundle exec puma -b tcp://127.0.0.1:$PORT"),
}
# A service with a build key in a compose file, and the container's port in a line such as "8080:80".
BUILT_SERVICE = re.compile(r"^  ([\w.-]+):\n(?:    .*\n|\n)*?    build:", re.MULTILINE)
PUBLISHED_PORT = re.compile(r"^ +- [\"']?(?:[\w.]+:)*(\d+)(?:/tcp)?[\"']?$", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class ServiceStart:
    """The commands that build and start a service."""

    kind: str  # kind of project, for a message
    lines: str  # lines for tfb.toml
    language: str = ""  # set only for languages with a just-in-time compiler


def command(
    folder: Annotated[str, Parameter(help="folder of the service; default: the current folder", metavar="DIR")] = ".",
) -> int:
    """Write a tfb.toml for ./tfb compare --base REV, based on the files of the service. Check the file before use."""
    service = Path(folder).resolve()
    if not service.is_dir():
        raise UsageError(f"{service} is not a folder: name the folder of the service")
    if os.path.lexists(service / FILE):
        raise UsageError(f"{service / FILE} already exists: edit it, or delete it and run {PROGRAM} init again")
    start = _detect_start(service)
    text = TEMPLATE.format(
        name="".join(c if c.isalnum() or c in "-._" else "-" for c in service.name).strip("-._") or "service",
        started=start.lines,
        language=f'language = "{start.language}"' if start.language else '# language = "java"       # longer warm-up',
        path=_first_route(service),
        program=PROGRAM,
    )
    try:
        confined.write(service, FILE, text.encode(), 0o644)
    except OSError as error:
        raise UsageError(f"{service / FILE} cannot be written: {error.strerror}: check the folder") from error
    print(
        f"{service / FILE}: written for {start.kind}. Check its start command and requests, then run "
        f"`{PROGRAM} compare --base main`"
    )
    return Exit.OK


def _detect_start(service: Path) -> ServiceStart:
    """Return how a service is built and started, judged by the first build file that is recognised."""
    names = {path.name for path in service.iterdir()}
    detectors = (_detect_node, _detect_python, _detect_go, _detect_rust, _detect_java, _detect_other, _detect_container)
    found = (detect(service, names) for detect in detectors)
    unknown = ServiceStart(kind="a service of unknown kind", lines=_command("", "./server --port $PORT"))
    return next(filter(None, found), unknown)


def _detect_node(service: Path, names: Set[str]) -> ServiceStart | None:
    if "package.json" not in names:
        return None
    scripts = _package_scripts(service)
    others = names & {"requirements.txt", "pyproject.toml", "go.mod", "manage.py"}
    others |= {pattern for pattern in OTHERS if any(service.glob(pattern))}
    if "start" not in scripts and others:
        return None
    return ServiceStart(kind="Node.js", lines=_node(service, scripts))


def _detect_python(service: Path, names: Set[str]) -> ServiceStart | None:
    commands = _python(service, names)
    return ServiceStart(kind="Python", lines=_command(*commands)) if commands else None


def _detect_go(service: Path, names: Set[str]) -> ServiceStart | None:
    if "go.mod" not in names:
        return None
    mains = [path.parent for path in sorted(service.glob("cmd/*/*.go")) if "package main" in _text(path)]
    in_root = any("package main" in _text(path) for path in service.glob("*.go"))
    package = "." if in_root or not mains else f"./{mains[0].relative_to(service)}"
    return ServiceStart(kind="Go", lines=_command(f"go build -o server {package}", "./server"))


def _detect_rust(service: Path, names: Set[str]) -> ServiceStart | None:
    if "Cargo.toml" not in names:
        return None
    crate = re.search(r'^name *= *"([^"]+)"', _text(service / "Cargo.toml"), re.MULTILINE)
    program = f"target/release/{crate[1] if crate else 'server'}"
    return ServiceStart(kind="Rust", lines=_command("cargo build --release", program))


def _detect_java(service: Path, names: Set[str]) -> ServiceStart | None:
    if "pom.xml" in names:
        maven = "./mvnw" if "mvnw" in names else "mvn"
        start = _jar_command("target", "*.jar", _text(service / "pom.xml"))
        return ServiceStart(kind="Maven", lines=_command(f"{maven} -q package -DskipTests", start), language="java")
    builds = sorted(names & {"build.gradle", "build.gradle.kts"})
    if not builds:
        return None
    text = _text(service / builds[0])
    task = next((task for plugin, task in GRADLE_TASKS.items() if plugin in text), "bootJar")
    jar = "libs/*-all.jar" if task == "shadowJar" else "libs/*.jar"
    lines = _command(f"./gradlew -q {task}", _jar_command("build", jar, text))
    return ServiceStart(kind="Gradle", lines=lines, language="java")


def _detect_other(service: Path, _: Set[str]) -> ServiceStart | None:
    for pattern, (kind, build, start) in sorted(OTHERS.items()):
        for file in service.glob(pattern):
            return ServiceStart(kind=kind, lines=_command(build, start.format(name=file.stem)))
    return None


def _detect_container(service: Path, names: Set[str]) -> ServiceStart | None:
    composes = sorted(names & {"compose.yaml", "compose.yml", "docker-compose.yaml", "docker-compose.yml"})
    if composes and (own := BUILT_SERVICE.search(text := _text(service / composes[0]))):
        port = PUBLISHED_PORT.search(text, own.start())
        lines = f'compose = "{composes[0]}"\nservice = "{own[1]}"   # the service whose CPU time counts\nport = '
        return ServiceStart(kind="a compose file", lines=lines + (port[1] if port else "8080"))
    if "Dockerfile" in names:
        port = re.search(r"^EXPOSE +(\d+)", _text(service / "Dockerfile"), re.MULTILINE)
        lines = 'dockerfile = "Dockerfile"   # must listen on 0.0.0.0 at this port, which is also in PORT\nport = '
        return ServiceStart(kind="a Dockerfile", lines=lines + (port[1] if port else "8080"))
    return None


def _node(service: Path, scripts: Mapping[str, object]) -> str:
    """Return lines for the package manager whose lock file is in the folder, or in a parent folder (workspace)."""
    folders = [service, *service.parents[:3]]
    tool = next((tool for lock, tool in LOCKS.items() if any((each / lock).exists() for each in folders)), "npm")
    build = "npm ci" if (service / "package-lock.json").exists() else f"{tool} install"
    build += f" && {tool} run build" if "build" in scripts else ""
    start = str(scripts.get("start", "node server.js"))
    is_plain = KNOWN_NODE.match(start) and not any(word in start for word in ("&&", ";", '"', "\\"))
    return _command(build, start if is_plain else f"{tool} run start")


def _command(build: str, start: str) -> str:
    build = f"build = {_quoted(build)}" if build else '# build = "make"'
    return f"{build}\nstart = {_quoted(start)}   # listens on 127.0.0.1 at $PORT, in the foreground"


def _quoted(text: str) -> str:
    """Quote text as a TOML string, which has the same escapes as JSON."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _jar_command(folder: str, jar: str, build_file: str) -> str:
    """Return the command that starts a jar of Quarkus, Micronaut or Spring Boot."""
    if "quarkus" in build_file:
        return f"java -Dquarkus.http.port=$PORT -jar {folder}/quarkus-app/quarkus-run.jar"
    if "micronaut" in build_file:
        return f"java -Dmicronaut.server.port=$PORT -jar {folder}/{jar}"
    return f"java -jar {folder}/{jar} --server.port=$PORT"


def _python(service: Path, names: Set[str]) -> tuple[str, str] | None:
    """Return the build command and the start command of a Python service, or None for other services."""
    requirements = next((name for name in ("requirements.txt", "pyproject.toml") if name in names), None)
    if requirements is None:
        return None
    text = _text(service / requirements)
    server, application = _application(service, text, installed=requirements == "pyproject.toml")
    missing = "" if server in text else server
    if "uv.lock" in names:
        build = "uv sync --frozen" + (f" && uv pip install -q {missing}" if missing else "")
    elif "poetry.lock" in names:
        build = "POETRY_VIRTUALENVS_IN_PROJECT=true poetry install"
        build += f" && poetry run pip install {missing}" if missing else ""
    else:
        source = "." if requirements == "pyproject.toml" else f"-r {requirements}"
        build = f"python3 -m venv .venv && .venv/bin/pip install -q {source} {missing}".rstrip()
    flags = "-b 127.0.0.1:$PORT" if server == "gunicorn" else "--port $PORT --log-level warning"
    return build, f".venv/bin/python -m {server} {flags} {application}"


def _application(service: Path, requirements: str, *, installed: bool) -> tuple[str, str]:
    """Return the server (gunicorn or uvicorn) and the application as ``module:name``.

    Args:
        service: Folder of the service.
        requirements: Text of the file with the requirements.
        installed: Whether the build installs the service, so that modules below src are importable.
    """
    for path in sorted(service.glob("*/wsgi.py")):
        return "gunicorn", f"{path.parent.name}.wsgi"
    flask = "flask" in requirements.lower()
    for path in _source_files(service):
        text = _text(path) if path.suffix == ".py" else ""
        flask = flask or "flask" in text.lower()
        if found := APPLICATION.search(text):
            parts = path.relative_to(service).with_suffix("").parts
            own = parts[1:] if installed and parts[0] == "src" else parts
            module = ".".join(part for part in own if part != "__init__")
            wsgi = "Flask(" in found[0] or (flask and "_app(" in found[0])
            return "gunicorn" if wsgi else "uvicorn", f"{module}:{found[1]}"
    return "gunicorn" if flask else "uvicorn", "app:app"


SOURCE_SUFFIXES = (".java", ".kt", ".scala", ".js", ".mjs", ".cjs", ".ts", ".py", ".go", ".rs", ".rb", ".php", ".cs")
SKIPPED_FOLDERS = (  # folders of dependencies, builds and tests
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
    """Return the text of a file, or an empty string for files that are special, too large or unreadable."""
    try:
        return safe_read.read(file, safe_read.MAX_TEXT_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""


def _package_scripts(service: Path) -> dict[str, object]:
    """Return the scripts in package.json, or an empty dictionary if there are none."""
    try:
        scripts = json.loads(_text(service / "package.json"))["scripts"]
    except (ValueError, LookupError, TypeError):
        return {}
    return scripts if isinstance(scripts, dict) else {}


def _first_route(service: Path) -> str:
    """Return the first declared GET route without a parameter, or "/" if there is no such route."""
    return next((route for path in _source_files(service) for route in ROUTE.findall(_text(path))), "/")


def _source_files(service: Path) -> Iterator[Path]:
    """Yield the source files of a service, except tests, build output and dependencies."""
    for folder, folders, names in os.walk(service):
        folders[:] = sorted(name for name in folders if name not in SKIPPED_FOLDERS and not name.startswith("."))
        files = (Path(folder) / name for name in sorted(names))
        yield from (path for path in files if path.suffix in SOURCE_SUFFIXES and path.is_file())
