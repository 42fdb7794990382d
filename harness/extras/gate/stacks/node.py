"""Recognises Node.js and Bun services and their package managers."""

import re
from collections.abc import Mapping

from harness.extras.gate.stacks.service_folder import ServiceFolder, Stack

FRAMEWORKS = {  # package -> stack name; the first match among the dependencies wins
    "next": "Next.js",
    "nuxt": "Nuxt",
    "@nestjs/core": "NestJS",
    "fastify": "Fastify",
    "express": "Express",
    "koa": "Koa",
    "hono": "Hono",
    "@hapi/hapi": "hapi",
    "restify": "Restify",
    "polka": "Polka",
    "@adonisjs/core": "AdonisJS",
}
LOCKS = {
    "pnpm-lock.yaml": "pnpm",
    "yarn.lock": "yarn",
    "bun.lock": "bun",
    "bun.lockb": "bun",
    "package-lock.json": "npm",
    "npm-shrinkwrap.json": "npm",
}
# Also install development dependencies, because builds need them. NODE_ENV=production would exclude them.
INSTALL = {
    "pnpm": "pnpm install --frozen-lockfile --prod=false",
    "yarn": "yarn install --frozen-lockfile --production=false",
    "berry": "yarn install --immutable",
    "bun": "bun install --frozen-lockfile",
    "npm": "npm ci --include=dev",
    "": "npm install --include=dev",
}
RUNNERS = {"pnpm": "pnpm exec", "yarn": "yarn", "berry": "yarn", "bun": "bunx", "npm": "npx", "": "npx"}
PRODUCTION_SCRIPTS = ("start:prod", "start:production", "prod", "start")
ENTRIES = tuple(
    f"{folder}{name}.{suffix}"
    for folder in ("", "src/", "bin/", "dist/")
    for name in ("server", "index", "app", "main")
    for suffix in ("js", "mjs", "cjs")
)
FRONT_END = re.compile(r"react-scripts start|\bng serve\b|^vite\b|\bvite dev\b|webpack(-dev-server| serve)|\bparcel\b")
PLAIN = re.compile(r"(\w+=\S* )*(node|npm|npx|yarn|pnpm|bun|deno)( |$)")
TO_PRODUCTION = (  # replacements that change a start script from development to production mode
    (re.compile(r"^(cross-env )?((?:\w+=\S+ )*)"), r"\2"),
    (re.compile(r"\b(?:NODE_ENV|PORT)=\w+ "), ""),
    (re.compile(r"\bnodemon (?:-[-\w]+(?:[= ](?![^ ]*\.[cm]?js)[^- ]\S*)? )*(?=\S+\.[cm]?js|\.)"), "node "),
    (re.compile(r"\b(?:ts-node-dev|tsnd)(?: --(?:respawn|transpile-only|exit-child|clear|poll))*"), "ts-node"),
    (re.compile(r"\btsx watch\b"), "tsx"),
    (re.compile(r" --(?:watch|inspect(?:-brk)?|hot)(?:[-=]\S+)?(?= |$)"), ""),
    (re.compile(r"\b(?:next dev|next)(?! (?:start|build))(?: --turbo(?:pack)?)?(?= |$)"), "next start"),
)


def detect_node(folder: ServiceFolder) -> Stack | None:
    """Return the stack of a folder with a package.json, or None."""
    if "package.json" not in folder.names:
        return None
    package = folder.json("package.json")
    packages = {**_table(package, "devDependencies"), **_table(package, "dependencies")}
    framework = next((known for known in FRAMEWORKS if known in packages), "")
    scripts = _table(package, "scripts")
    manager = _manager(folder, package)
    start = _start(folder, package, scripts, manager)
    runs = [INSTALL[manager]]
    if "build" in scripts:
        runs.append(f"{manager.replace('berry', 'yarn') or 'npm'} run build")
    elif framework == "next":
        runs.append(f"{RUNNERS[manager]} next build")
    elif "tsconfig.json" in folder.names and re.search(r"\b(dist|build|out|lib)/", start):
        runs.append(f"{RUNNERS[manager]} tsc")
    env = {"NODE_ENV": "production"}
    if framework == "next" and re.search(r"output:\s*[\"']standalone", folder.text(folder.first(*_next_files()))):
        runs.append("cp -r .next/static .next/standalone/.next/ && mkdir -p public && cp -r public .next/standalone/")
        start, env = "node .next/standalone/server.js", {**env, "HOSTNAME": "127.0.0.1"}
    elif framework == "nuxt":
        start, env = "node .output/server/index.mjs", {**env, "HOST": "127.0.0.1"}
    script = " ".join(str(scripts.get(name, "")) for name in PRODUCTION_SCRIPTS)
    return Stack(
        name=FRAMEWORKS.get(framework, "Node.js"),
        file="package.json",
        build=" && ".join(runs),
        start=start or "node server.js",
        env=env,
        path_prefix="PATH=$PWD/node_modules/.bin:$PATH ",
        reads_port=framework in ("next", "nuxt", "@adonisjs/core") or "fastify start" in start,
        is_guess=not start or bool(FRONT_END.search(script) and not framework),
        advice=() if start else ("package.json has no start script: check the start command",),
    )


def _next_files() -> tuple[str, ...]:
    return tuple(f"next.config.{suffix}" for suffix in ("js", "mjs", "ts", "cjs"))


def _table(package: Mapping[str, object], key: str) -> dict[str, object]:
    table = package.get(key)
    return table if isinstance(table, dict) else {}


def _manager(folder: ServiceFolder, package: Mapping[str, object]) -> str:
    """Return the package manager whose lock file is in this or a parent folder, or "" if there is no lock file.

    The result "berry" means version 2 or later of Yarn.
    """
    lock = folder.first(*LOCKS) or folder.in_parents(*LOCKS)
    if not lock:
        return ""
    manager = LOCKS[lock]
    modern = folder.in_parents(".yarnrc.yml") or re.match(r"yarn@[2-9]", str(package.get("packageManager", "")))
    return "berry" if manager == "yarn" and modern else manager


def _start(folder: ServiceFolder, package: Mapping[str, object], scripts: Mapping[str, object], manager: str) -> str:
    """Return the production start command, or "" if there is neither a start script nor an entry file."""
    name = next((name for name in PRODUCTION_SCRIPTS if name in scripts), "")
    tool = manager.replace("berry", "yarn") or "npm"
    packages = _table(package, "dependencies")
    if not name and "next" in packages:
        return _program("next start", folder, manager)
    if not name or str(scripts[name]).startswith("nest start"):
        main = str(package.get("main", ""))
        entry = folder.first(*([main] if main.endswith("js") else []), *ENTRIES)
        return "node dist/main" if "@nestjs/core" in packages else f"node {entry}" if entry else ""
    text = str(scripts[name]).strip()
    for pattern, replacement in TO_PRODUCTION:
        text = pattern.sub(replacement, text)
    if re.search(r"[&|;\"'\\$()<>]", text):
        return f"{tool} run {name}"
    text = re.sub(r"( -p| --port)[ =]\d+\b", r"\1 $PORT", text)
    return text if PLAIN.match(text) else _program(text, folder, manager)


def _program(command: str, folder: ServiceFolder, manager: str) -> str:
    """Prefix the command so that the shell finds the program in the installed packages."""
    is_alone = not manager or bool(folder.first(*LOCKS))  # otherwise the packages are in a parent folder
    is_linked = manager != "berry" or "node-modules" in folder.text(".yarnrc.yml")
    runner = "node_modules/.bin/" if is_alone and is_linked else f"{RUNNERS[manager]} "
    return re.sub(r"^((?:\w+=\S+ )*)", rf"\1{runner}", command)
