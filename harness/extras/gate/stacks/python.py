"""Recognises Python services, and determines their installer, application and production server."""

import re
from dataclasses import dataclass, replace
from pathlib import PurePath

from harness.extras.gate.stacks.service_folder import ServiceFolder, Stack, has_word

WORKERS = 2
MANIFESTS = (
    *("requirements.txt", "requirements/production.txt", "requirements/prod.txt", "requirements-prod.txt"),
    *("requirements/base.txt", "pyproject.toml", "Pipfile", "setup.py"),
)
# Assignments that create applications: app = FastAPI(…), api: Flask = Flask(…) and application = create_app().
APPLICATION = re.compile(
    r"^(\w+)(?: *: *[\w.]+)? *= *(?:[\w.]+\.)?"
    r"(FastAPI|Starlette|Litestar|Quart|Sanic|Robyn|Flask|APIFlask|Bottle|asgi\.App|App|web\.Application|Application"
    r"|\w*make_wsgi_app|\w+_app)\(",
    re.MULTILINE,
)
FACTORY = re.compile(r"^(?:async )?def ((?:create|make|build|get|init)_(?:app|application))\((?!\w+[,)])", re.MULTILINE)
FRAMEWORKS = {  # package -> (stack name, application interface); the first match wins
    "django": ("Django", "wsgi"),
    "fastapi": ("FastAPI", "asgi"),
    "litestar": ("Litestar", "asgi"),
    "quart": ("Quart", "asgi"),
    "sanic": ("Sanic", "sanic"),
    "apiflask": ("APIFlask", "wsgi"),
    "flask": ("Flask", "wsgi"),
    "falcon": ("Falcon", "wsgi"),
    "bottle": ("Bottle", "wsgi"),
    "pyramid": ("Pyramid", "wsgi"),
    "aiohttp": ("aiohttp", "aiohttp"),
    "starlette": ("Starlette", "asgi"),
}
SERVERS = {  # server -> (application interfaces, arguments); the first match in the requirements wins
    "granian": (("asgi", "wsgi"), "--interface {kind} --host 127.0.0.1 --port $PORT --workers {workers}"),
    "hypercorn": (("asgi",), "-b 127.0.0.1:$PORT --workers {workers}"),
    "uvicorn": (("asgi",), "--host 127.0.0.1 --port $PORT --workers {workers} --log-level warning"),
    "gunicorn": (("wsgi", "aiohttp"), "-b 127.0.0.1:$PORT --workers {workers}"),
    "waitress": (("wsgi",), "--listen=127.0.0.1:$PORT"),
    "sanic": (("sanic",), "--host 127.0.0.1 --port $PORT --workers {workers}"),
}
DEFAULT_SERVERS = {"asgi": "uvicorn", "wsgi": "gunicorn", "aiohttp": "gunicorn", "sanic": "sanic"}
GUARD = re.compile(r"^if __name__ == [\"']__main__[\"']|serve_forever\(|\brun_app\(", re.MULTILINE)
SCRIPTS = ("main.py", "server.py", "app.py", "run.py", "src/main.py", "src/server.py", "src/app.py")
# Production settings that a build adds to a Django project without changing its files.
DJANGO_OVERRIDES = (
    "from {settings} import *",
    "DEBUG = False",
    'ALLOWED_HOSTS = ["*"]',
    "SECURE_SSL_REDIRECT = False",
)
DEPENDENCIES = (
    'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["dependencies"], sep="\\n")'
)


@dataclass(frozen=True, kw_only=True)
class Application:
    """A Python web application that a server imports from ``target``."""

    kind: str  # interface: asgi, wsgi, aiohttp or sanic
    target: str  # for example shop.main:app
    folder: str = ""  # folder to which module names are relative; empty for the service's folder
    is_factory: bool = False


def detect_python(folder: ServiceFolder) -> Stack | None:
    """Return the stack of a Python service, or None."""
    manifest = folder.first(*MANIFESTS)
    script = next((name for name in SCRIPTS if GUARD.search(folder.text(name))), "")
    if not manifest:
        script = script or next((file for file in folder.glob("*.py") if GUARD.search(folder.text(file))), "")
        return Stack(name="Python", file=script, start=f"python3 {script}") if script else None
    required = "\n".join(folder.text(name) for name in (*folder.glob("requirements*.txt"), *MANIFESTS))
    framework = next((known for known in FRAMEWORKS if has_word(required, known)), "")
    name, kind = FRAMEWORKS.get(framework, ("Python", "asgi"))
    if framework == "django" and (wsgi := folder.glob("*/wsgi.py") + folder.glob("*/*/wsgi.py")):
        return _django(folder, manifest, required, wsgi[0])
    app = _application(folder, kind, is_installed=manifest in ("pyproject.toml", "setup.py"))
    if app is None and script and framework not in ("fastapi", "flask", "starlette"):  # the script starts a server
        return _stack(name, manifest, _install(folder, manifest, ""), f".venv/bin/python {script}")
    found_app = app or Application(kind=kind, target="app:app")
    server, start = _server(found_app, required)
    build = _install(folder, manifest, "" if has_word(required, server) else server)
    if re.search(r"[\"']init-db[\"']", "".join(map(folder.text, folder.sources((".py",))))) and framework == "flask":
        build += f" && .venv/bin/python -m flask --app {found_app.target.partition(':')[0]} init-db"
    advice = () if app else ("no application was found: check the application at the end of the start command",)
    return _stack(name, manifest, build, start, *advice)


def _stack(name: str, manifest: str, build: str, start: str, *advice: str) -> Stack:
    prefix = "PATH=$PWD/.venv/bin:$PATH "
    return Stack(name=name, file=manifest, build=build, start=start, path_prefix=prefix, advice=advice)


def _install(folder: ServiceFolder, manifest: str, server: str) -> str:
    """Return the command that installs a service into .venv. If ``server`` is not empty, also install this package."""
    pip = ".venv/bin/python -m pip"
    if folder.in_parents("uv.lock"):
        sync = "uv sync --frozen --no-dev" if "uv.lock" in folder.names else "UV_PROJECT_ENVIRONMENT=$PWD/.venv uv sync"
        return sync + (f" && uv pip install -q {server}" if server else "")
    if "poetry.lock" in folder.names:
        command, pip = (
            "POETRY_VIRTUALENVS_IN_PROJECT=true poetry install --only main --no-interaction",
            "poetry run pip",
        )
    elif "pdm.lock" in folder.names:
        command = "pdm config --local venv.in_project true && pdm install --prod"
        return command + (f" && pdm run python -m ensurepip && {pip} install -q {server}" if server else "")
    elif "Pipfile" in folder.names and manifest == "Pipfile":
        verb = "sync" if "Pipfile.lock" in folder.names else "install"
        command, pip = f"PIPENV_VENV_IN_PROJECT=1 pipenv {verb}", "pipenv run pip"
    elif manifest != "pyproject.toml":
        source = "." if manifest == "setup.py" else f"-r {manifest}"
        command = f"python3 -m venv .venv && {pip} install -q {source}"
    elif "[build-system]" in folder.text(manifest):
        command = f"python3 -m venv .venv && {pip} install -q ."
    else:  # pyproject.toml only lists dependencies, so pip cannot install it as a project
        command = f"python3 -m venv .venv && python3 -c '{DEPENDENCIES}' | {pip} install -q -r /dev/stdin"
    return command + (f" && {pip} install -q {server}" if server else "")


def _server(app: Application, required: str) -> tuple[str, str]:
    """Return the name of a server that can run an application, and the start command."""
    suitable = (name for name, (kinds, _) in SERVERS.items() if app.kind in kinds and has_word(required, name))
    name = next(suitable, DEFAULT_SERVERS[app.kind])
    arguments = SERVERS[name][1].format(kind=app.kind, workers=WORKERS)
    if app.kind == "aiohttp":
        arguments += " -k aiohttp.GunicornWebWorker"
    if app.folder:
        option = {"uvicorn": "--app-dir", "gunicorn": "--chdir"}.get(name)
        arguments = f"{option} {app.folder} {arguments}" if option else arguments
    target = app.target
    if app.is_factory and name == "gunicorn" and app.kind == "wsgi":
        target = f"'{target}()'"
    elif app.is_factory and name in ("uvicorn", "granian", "sanic"):
        arguments += " --factory"
    elif app.is_factory and name == "waitress":
        arguments += " --call"
    variables = f"PYTHONPATH={app.folder} " if app.folder and name not in ("uvicorn", "gunicorn") else ""
    return name, f"{variables}.venv/bin/python -m {name} {arguments} {target}"


def _application(folder: ServiceFolder, kind: str, *, is_installed: bool) -> Application | None:
    """Return the first application that a module defines, otherwise the first application factory, otherwise None."""
    factory = None
    for file in folder.sources((".py",)):
        text = folder.text(file)
        module, path = _module(folder, file, is_installed=is_installed)
        if (match := APPLICATION.search(text)) and (kind_of_match := _kind(match[2], text, kind)):
            return Application(kind=kind_of_match, target=f"{module}:{match[1]}", folder=path)
        if factory is None and (match := FACTORY.search(text)) and (kind_of_match := _kind("create_app", text, kind)):
            if kind_of_match == "aiohttp" and not match[0].startswith("async"):
                continue  # the server can call only asynchronous factories
            factory = Application(kind=kind_of_match, target=f"{module}:{match[1]}", folder=path, is_factory=True)
    return factory


def _kind(constructor: str, text: str, default: str) -> str:
    if constructor in ("Flask", "APIFlask", "Bottle") or "make_wsgi_app" in constructor or "Flask(" in text:
        return "wsgi"
    if constructor in ("web.Application", "Application") or "web.Application(" in text:
        return "aiohttp" if "aiohttp" in text else ""  # Tornado has no separate server
    if constructor == "Sanic":
        return "sanic"
    return "asgi" if constructor in ("FastAPI", "Starlette", "Litestar", "Quart", "asgi.App") else default


def _module(folder: ServiceFolder, file: str, *, is_installed: bool) -> tuple[str, str]:
    """Return a file's module name, and the folder to which the name is relative ("" for the service's folder)."""
    parts = PurePath(file).with_suffix("").parts
    path = ""
    if parts[0] == "src" and len(parts) > 1 and not folder.text("src/__init__.py"):
        parts, path = parts[1:], "" if is_installed else "src"
    return ".".join(part for part in parts if part != "__init__"), path


def _django(folder: ServiceFolder, manifest: str, required: str, wsgi: str) -> Stack:
    """Return a Django project's stack, with a build that turns debug mode off."""
    manage = next(iter(folder.glob("manage.py") + folder.glob("*/manage.py")), "manage.py")
    root, package = PurePath(manage).parent, PurePath(wsgi).parent
    name = ".".join((package.relative_to(root) if package.is_relative_to(root) else package).parts)
    declared = re.search(r"DJANGO_SETTINGS_MODULE[\"'], *[\"']([\w.]+)", folder.text(manage) + folder.text(wsgi))
    settings = declared[1] if declared else f"{name}.settings"
    for production in ("production", "prod"):
        if folder.glob(f"**/settings/{production}.py"):
            settings = f"{settings.partition('.settings')[0]}.settings.{production}"
    lines = " ".join(f"'{line.format(settings=settings)}'" for line in DJANGO_OVERRIDES)
    app = Application(kind="wsgi", target=f"{name}.wsgi", folder="" if str(root) == "." else str(root))
    server, start = _server(app, required)
    build = _install(folder, manifest, "" if has_word(required, server) else server)
    build += f" && printf '%s\\n' {lines} > {root / 'tfb_settings.py'}"
    sources = "".join(folder.text(file) for file in folder.sources((".py",)))
    if uses_file := "sqlite3" in sources:
        build += f" && .venv/bin/python {manage} migrate --noinput"
    if "STATIC_ROOT" in sources:
        build += f" && .venv/bin/python {manage} collectstatic --noinput"
    advice = (
        ()
        if uses_file
        else ("the database is not SQLite: set its connection variables in env; see postgres in docs/gate.md",)
    )
    stack = _stack("Django", manifest, build, start, *advice)
    return replace(stack, env={"DJANGO_SETTINGS_MODULE": "tfb_settings"})
