"""The command ``./tfb init``, which writes a tfb.toml for a service, based on the files in the service's folder."""

import json
import os
import re
import shlex
from collections.abc import Sequence
from pathlib import Path, PurePath
from typing import Annotated

from cyclopts import Parameter

from harness.errors import Exit, UsageError
from harness.extras.gate.stacks import recognise, services_below
from harness.extras.gate.stacks.service_folder import ServiceFolder, Stack
from harness.paths import PROGRAM
from harness.plan.service import FILE
from harness.records import confined

# Route declarations, for example @app.get("/x"), @GetMapping("/x"), HandleFunc("GET /x", …), r.GET("/x", …),
# #[get("/x")], Route::get('/x', …) and get '/x' do.
ROUTE = re.compile(
    r"""(?:(?:\.get|\.GET|\.Get|\bGetMapping|\.MapGet|\bHandle(?:Func)?|\.route|\.add_get|\.add_route|\bRoute|\#\[get|::get)\("""
    r"""(?:path\s*=\s*|value\s*=\s*)?|^\s*get\(?\s*)\s*["'](?:GET )?(/[^"'\s]*|)["']""",
    re.MULTILINE,
)
# Pairs of patterns. The first finds the path prefix of all routes in a class or group. The second finds these routes.
PREFIXES = (
    (
        re.compile(r"@Controller\(\s*(?:\{[^}]*path:\s*)?(?:[\"']([^\"']*)[\"'])?"),
        re.compile(r"@Get\((?:[\"']([^\"']*))?"),
    ),
    (
        re.compile(r"@RequestMapping\((?:path\s*=\s*|value\s*=\s*)?[\"']([^\"']*)[\"']\)\s*(?:public\s+)?class"),
        re.compile(r"@GetMapping\b(?:\((?:path\s*=\s*|value\s*=\s*)?[\"']([^\"']*))?"),
    ),
    (
        re.compile(r"@Path\([\"']([^\"']*)[\"']\)\s*(?:@\w+(?:\([^)]*\))?\s*)*(?:public\s+)?class"),
        re.compile(r"@GET\b(?:\s*@(?!Path)\w+(?:\([^)]*\))?)*(?:\s*@Path\([\"']([^\"']*))?"),
    ),
    (re.compile(r"\bRouter\(\{[^)}]*prefix:\s*[\"']([^\"']*)"), re.compile(r"\.get\(\s*[\"']([^\"']*)")),
    (re.compile(r"\.Group\(\s*\"([^\"]*)"), re.compile(r"\.(?:GET|Get)\(\s*\"([^\"]*)")),
    (re.compile(r"APIRouter\([^)]*prefix\s*=\s*[\"']([^\"']*)"), re.compile(r"\.get\(\s*[\"']([^\"']*)")),
    (re.compile(r"Blueprint\([^)]*url_prefix\s*=\s*[\"']([^\"']*)"), re.compile(r"\.(?:get|route)\(\s*[\"']([^\"']*)")),
)
PARAMETER = re.compile(r"[{:<*($\[\\]")
INCLUDE = re.compile(r"path\(\s*[\"']([^\"']*)[\"']\s*,\s*include\(\s*[\"']([\w.]+)[\"']")
VIEW = re.compile(r"path\(\s*[\"']([^\"']*)[\"']\s*,\s*(?!include|admin\.)")
NEXT_ROUTES = ("app/**/route.*", "src/app/**/route.*", "pages/api/**/*.*", "src/pages/api/**/*.*")


def first_route(folder: ServiceFolder) -> str:
    """Return the path of the first declared GET route without parameters, or "/" if there is no such route."""
    return _next_route(folder) or _django_route(folder) or _declared_route(folder) or "/"


def _declared_route(folder: ServiceFolder) -> str:
    for file in folder.sources():
        text = folder.text(file)
        for prefix, route in PREFIXES:
            if (outer := prefix.search(text)) and not PARAMETER.search(outer[1] or ""):
                inner = (match[1] or "" for match in route.finditer(text, outer.end()))
                plain = next((path for path in inner if not PARAMETER.search(path)), None)
                if plain is not None:
                    return _joined(outer[1] or "", plain)
        if plain := next((path for path in ROUTE.findall(text) if path and not PARAMETER.search(path)), ""):
            return str(plain)
    return ""


def _joined(*parts: str) -> str:
    return "/" + "/".join(part.strip("/") for part in parts if part.strip("/"))


def _next_route(folder: ServiceFolder) -> str:
    """Return the path of a Next.js API route, or an empty string."""
    for pattern in NEXT_ROUTES if "next" in folder.text("package.json") else ():
        for file in folder.glob(pattern):
            place = PurePath(file)
            parts = [part for part in place.parts[:-1] if not part.startswith("(")]
            is_pages = "pages" in parts
            start = parts.index("pages" if is_pages else "app") + 1
            name = place.name.partition(".")[0]
            words = parts[start:] + ([name] if is_pages and name != "index" else [])
            if not any("[" in word for word in words) and (is_pages or "GET" in folder.text(file)):
                return _joined(*words)
    return ""


def _django_route(folder: ServiceFolder) -> str:
    """Return the path of a Django project's first view, otherwise the path of the admin login, otherwise ""."""
    manage = (folder.glob("manage.py") + folder.glob("*/manage.py"))[:1]
    if not manage:
        return ""
    root = str(PurePath(manage[0]).parent)
    for file in folder.glob(f"{root}/*/urls.py" if root != "." else "*/urls.py"):
        text = folder.text(file)
        if "admin.site.urls" not in text and "include(" not in text:
            continue
        routes = [("", match[1]) for match in VIEW.finditer(text)]
        for prefix, module in INCLUDE.findall(text):
            inner = folder.text(f"{root}/{module.replace('.', '/')}.py")
            routes += [(prefix, match[1]) for match in VIEW.finditer(inner)]
        if plain := next((pair for pair in routes if not PARAMETER.search("".join(pair))), None):
            return "/" + "".join(plain).lstrip("/")
        return "/admin/login/" if "admin.site.urls" in text else ""
    return ""


TEMPLATE = """\
# Describes this service for {program} compare. Commands run in this folder, in a shell. {recognised}

[service]
name = "{name}"
{started}
# ready = "/health"        # returns status 200 when the service is ready; default: path of the first request
{env}
{language}
# postgres = true          # start PostgreSQL with an empty database: DBHOST, DBPORT, DBNAME, DBUSER, DBPASS
# connections = 32         # number of connections that the load generator opens

# Add one section for each request, with the expected response. tfb measures requests one after another.
[[request]]
name = "root"
path = "{path}"             # check this path
# weight = 1.0             # weight in the overall result
[request.expect]
status = 200
# content_type = "application/json"
# json = {{ ok = true }}     # the response must contain these members
# json_schema = "schema.json"
# size = [2, 100000]       # minimum and maximum body size in bytes

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
UNKNOWN = Stack(
    name="",
    file="",
    start="./server --port $PORT",
    advice=(
        "build: the command that installs dependencies and compiles the service",
        "start: the command that starts the service in production mode, in the foreground, on 127.0.0.1 at $PORT",
        "path: a path that returns status 200",
    ),
)


def command(
    folder: Annotated[str, Parameter(help="the service's folder; default: the current folder", metavar="DIR")] = ".",
) -> int:
    """Write a tfb.toml for ./tfb compare --base REV, based on the service's files. Check the file before you use it."""
    service = Path(folder).resolve()
    if not service.is_dir():
        raise UsageError(f"{service} is not a folder: pass the service's folder")
    if os.path.lexists(service / FILE):
        raise UsageError(f"{service / FILE} already exists: edit it, or delete it and run {PROGRAM} init again")
    stacks = recognise(service)
    stack = stacks[0] if stacks else UNKNOWN
    text = _format(service, stack, stacks[1:])
    try:
        confined.write(service, FILE, text.encode(), 0o644)
    except OSError as error:
        raise UsageError(f"cannot write {service / FILE}: {error.strerror}: make the folder writable") from error
    if stack is UNKNOWN:
        print(_format_unknown(service, text))
        return Exit.OK
    print(f"{service / FILE}: written for {stack.name} ({stack.file})")
    if others := _format_names(stacks[1:]):
        print(f"Also recognised: {others}. To use a different stack, change [service] in {FILE}")
    for advice in stack.advice:
        print(f"To do: {advice}")
    where = "" if service == Path.cwd() else f"--service {shlex.quote(folder)} "
    print(f"Check the start command and the request, then run `{PROGRAM} compare {where}--base main`")
    return Exit.OK


def _format_unknown(service: Path, text: str) -> str:
    lines = [
        text,
        f"{service / FILE}: written, but tfb recognised no stack in this folder. Fill in build, start and path",
    ]
    if below := services_below(service):
        known = "; ".join(f"{name} ({stack.name}): {PROGRAM} init {service / name}" for name, stack in below)
        lines.append(f"Services were found in subfolders. To use one, delete this {FILE}, and run its command: {known}")
    return "\n".join(lines)


def _format_names(stacks: Sequence[Stack]) -> str:
    return ", ".join(f"{stack.name} ({stack.file})" for stack in stacks)


def _format(service: Path, stack: Stack, others: Sequence[Stack]) -> str:
    """Return the content of tfb.toml."""
    recognised = f"Recognised: {_format_names([stack])}." if stack.name else "FILL IN the marked values."
    recognised += f"\n# Also recognised, but not used: {_format_names(others)}." if others else ""
    variables = ", ".join(f"{name} = {_quoted(value)}" for name, value in stack.env.items())
    return TEMPLATE.format(
        name="".join(c if c.isalnum() or c in "-._" else "-" for c in service.name).strip("-._") or "service",
        recognised=recognised,
        started=_format_start(stack),
        env=f"env = {{ {variables} }}" if variables else '# env = { LOG_LEVEL = "warning" }',
        language=f'language = "{stack.language}"' if stack.language else '# language = "java"       # longer warm-up',
        path=stack.path or first_route(ServiceFolder(service)),
        program=PROGRAM,
    )


def _format_start(stack: Stack) -> str:
    lines = [f"# {'To do' if stack.name else 'FILL IN'}: {advice}" for advice in stack.advice]
    if stack.container:
        lines += [
            f"{key} = {value if isinstance(value, int) else _quoted(value)}" for key, value in stack.container.items()
        ]
    else:
        lines.append(f"build = {_quoted(stack.build)}" if stack.build else '# build = "make"')
        lines.append(f"start = {_quoted(stack.start)}   # listens on 127.0.0.1 at $PORT, in the foreground")
    return "\n".join(lines)


def _quoted(text: str) -> str:
    """Quote text as a TOML string, which has the same escapes as JSON."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
