"""Recognises a service's stack from the files in the service's folder.

A stack, for example Express with npm, determines how to build and start the service in production mode.
"""

import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from harness.extras.gate.stacks import compiled, containers, node, python, scripted
from harness.extras.gate.stacks.service_folder import SKIPPED_FOLDERS, ServiceFolder, Stack

# Detectors in order of preference. Compose files with prebuilt images, such as databases, come first, because the
# service needs these images.
DETECTORS = (
    containers.detect_compose_with_dependencies,
    node.detect_node,
    python.detect_python,
    compiled.detect_java,
    compiled.detect_go,
    compiled.detect_rust,
    compiled.detect_dotnet,
    scripted.detect_ruby,
    scripted.detect_php,
    scripted.detect_perl,
    scripted.detect_shell,
    containers.detect_compose,
    containers.detect_dockerfile,
)
PROCFILE_LINE = re.compile(r"^web: *(\S.*)$", re.MULTILINE)
DEVELOPMENT_SERVER = re.compile(r"\bflask run\b|\brunserver\b|\bnodemon\b|--reload\b|\b(next|vite|nuxt) dev\b")
FIXED_PORT = re.compile(r"(?i)(?:\blisten\w*|\bstart|\brun|\bbind|\bserve\w*)\b[^\n;]{0,60}?\b(\d{4,5})\b")
READS_PORT = re.compile(r"\bPORT\b")


def recognise(path: Path) -> list[Stack]:
    """Return the stacks that a folder contains, preferred stack first."""
    folder = ServiceFolder(path)
    stacks = [stack for detect in DETECTORS if (stack := detect(folder))]
    stacks.sort(key=lambda stack: stack.is_guess)  # a stable sort preserves the order of preference
    web = PROCFILE_LINE.search(folder.text("Procfile"))
    if web and not DEVELOPMENT_SERVER.search(web[1]):
        first = next((stack for stack in stacks if stack.start), Stack(name="Procfile", file="Procfile", start=web[1]))
        others = [stack for stack in stacks if stack is not first]
        start = f"{first.path_prefix}{web[1]}"
        stacks = [replace(first, file=f"{first.file}, Procfile".replace("Procfile, ", ""), start=start), *others]
    return [replace(stacks[0], advice=(*stacks[0].advice, *_advice(folder, stacks[0]))), *stacks[1:]] if stacks else []


def services_below(path: Path) -> list[tuple[str, Stack]]:
    """Return (path, preferred stack) for each subfolder with a service. Search two levels of subfolders."""
    below = (folder for pattern in ("*", "*/*") for folder in sorted(path.glob(pattern)))
    candidates = [folder for folder in below if folder.is_dir() and not _is_skipped(folder.relative_to(path))]
    stacks_by_folder = ((folder, recognise(folder)) for folder in candidates[:200])
    return [
        (str(folder.relative_to(path)), stacks[0])
        for folder, stacks in stacks_by_folder
        if stacks and not stacks[0].is_guess
    ]


def _is_skipped(path: Path) -> bool:
    return any(part in SKIPPED_FOLDERS or part.startswith(".") for part in path.parts)


def _advice(folder: ServiceFolder, stack: Stack) -> Iterator[str]:
    """Yield the changes that the user must make before tfb can measure the service."""
    for program in dict.fromkeys(_programs(stack.build, stack.start)):
        if shutil.which(program) is None:
            yield f"{program} is not on PATH: install it"
    if stack.start and "PORT" not in stack.start and not stack.reads_port:
        texts = [(file, folder.text(file)) for file in folder.sources()]
        if not any(READS_PORT.search(text) for _, text in texts):
            where = next(_fixed_ports(texts), "no source file reads the variable PORT")
            yield f"{where}: make the server listen on the port in the variable PORT"


def _fixed_ports(texts: Sequence[tuple[str, str]]) -> Iterator[str]:
    for file, text in texts:
        if match := FIXED_PORT.search(text):
            yield f"{file}, line {text.count(chr(10), 0, match.start(1)) + 1}: port {match[1]} is hard-coded"


def _programs(build: str, start: str) -> Iterator[str]:
    """Yield each command's program. Skip paths and shell builtins."""
    for command in (*build.split(" && "), start):
        words = [word for word in command.split() if "=" not in word]
        if words and re.fullmatch(r"[a-z][\w.+-]*", words[0]) and words[0] not in ("cd", "exec", "printf", "export"):
            yield words[0]
