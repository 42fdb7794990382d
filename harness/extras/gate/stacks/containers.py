"""Recognises services that a compose file or a Dockerfile describes."""

import re
from collections.abc import Iterator, Mapping

import yaml

from harness.extras.gate.stacks.service_folder import ServiceFolder, Stack

COMPOSE_FILES = ("compose.yaml", "compose.yml", "docker-compose.yaml", "docker-compose.yml")
DOCKERFILES = ("Dockerfile", "Containerfile", "docker/Dockerfile")
WEB_PORTS = ("80", "3000", "4000", "5000", "8000", "8080", "8888", "9000")
DEVELOPMENT_WORDS = re.compile(
    r"--reload|--debug|\bflask run\b|runserver|nodemon|\brun dev\b|NODE_ENV.{1,4}development"
)
MAX_COMPOSE_BYTES, MAX_ALIASES = 1 << 20, 100
DEFAULT_PORT = 8080


def detect_compose_with_dependencies(folder: ServiceFolder) -> Stack | None:
    """Return a compose file's stack if the file builds a service and uses prebuilt images, else None."""
    stack_and_images = _compose(folder)
    return stack_and_images[0] if stack_and_images and stack_and_images[1] else None


def detect_compose(folder: ServiceFolder) -> Stack | None:
    """Return a compose file's stack if the file builds a service and uses no prebuilt images, else None."""
    stack_and_images = _compose(folder)
    return stack_and_images[0] if stack_and_images and not stack_and_images[1] else None


def detect_dockerfile(folder: ServiceFolder) -> Stack | None:
    """Return the stack of a folder with a Dockerfile, or None."""
    file = folder.first(*DOCKERFILES)
    if not file:
        return None
    port = re.search(r"^EXPOSE +(\d+)", folder.text(file), re.MULTILINE)
    container: dict[str, str | int] = {"dockerfile": file, "port": int(port[1]) if port else DEFAULT_PORT}
    advice = () if port else (f"{file} has no EXPOSE line: check the port in tfb.toml",)
    return Stack(name="a Dockerfile", file=file, container=container, advice=advice)


def _compose(folder: ServiceFolder) -> tuple[Stack, list[str]] | None:
    """Return a compose file's stack and the other services' image names, or None if the file builds no service."""
    file = folder.first(*COMPOSE_FILES)
    services = _services(folder.text(file)) if file else {}
    built = [name for name, service in services.items() if "build" in service]
    if not built:
        return None
    built.sort(key=lambda name: not services[name].get("ports"))  # services with published ports first
    name = built[0]
    ports = [port for port in _ports(services[name]) if port.isdigit()]
    port = next((port for port in ports if port in WEB_PORTS), next(iter(ports), ""))
    others = [other for other in services if other != name]
    images = [re.split(r"[:@]", str(services[other].get("image", "")))[0].rpartition("/")[2] for other in others]
    advice = [] if port else [f"{file}: service {name} declares no port: check the port in tfb.toml"]
    text = f"{services[name].get('command', '')} {services[name].get('environment', '')}"
    if development := DEVELOPMENT_WORDS.search(text):
        advice.append(f"{file}: service {name} runs in development mode ({development[0]}): change it for production")
    known = [image for image in dict.fromkeys(images) if image]
    stack = Stack(
        name="Docker Compose" + (f" with {', '.join(known)}" if known else ""),
        file=file,
        container={"compose": file, "service": name, "port": int(port or DEFAULT_PORT)},
        advice=tuple(advice),
    )
    return stack, known


def _services(text: str) -> dict[str, Mapping[str, object]]:
    if len(text) > MAX_COMPOSE_BYTES or text.count("*") > MAX_ALIASES:
        return {}
    try:
        document = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError):
        return {}
    services = document.get("services") if isinstance(document, dict) else None
    if not isinstance(services, dict):
        return {}
    return {str(name): service for name, service in services.items() if isinstance(service, dict)}


def _ports(service: Mapping[str, object]) -> Iterator[str]:
    """Yield the ports inside the container, from forms such as "127.0.0.1:8080:80/tcp", 80 and {target: 80}."""
    for key in ("ports", "expose"):
        entries = service.get(key)
        for entry in entries if isinstance(entries, list) else ():
            text = str(entry.get("target", "")) if isinstance(entry, dict) else str(entry)
            inner = re.sub(r"\$\{[^}:]*:?-?([^}]*)\}", r"\1", text).rpartition(":")[2]
            yield inner.partition("/")[0].partition("-")[0]
