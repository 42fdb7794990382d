"""``./tfb stand-ins FOLDER…``: Debian with the toolchain, under the names of base images that no registry gives here.

A stand-in is not the image: its versions are Debian's (or those of the language's own package registry), its libc is
glibc where the name says Alpine, and it is labelled, so that the results of what is built upon it say so.
"""

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from harness.errors import BuildError, Exit, UsageError
from harness.extras.stand_ins.recipes import COMPILERS, STABLE, USUAL, Recipe, recipe_for
from harness.host import process
from harness.paths import REPOSITORY
from harness.plan.discovery import CONFIG_FILE
from harness.plan.dockerfile import of_file
from harness.runtime.compose import FOLDER, STAND_IN_LABEL, client, docker, engine, inspect

BASE = "debian:trixie-slim"
BUILD_SECONDS = 1800.0
SCRIPTS = REPOSITORY / "toolset" / "provision" / "stand-ins"
INSTALL = "apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends"
NEWER = ("golang-go", "cargo", "rustc")  # taken from Debian's backports where a recipe says so
BACKPORTS = "s/^Suites: trixie trixie-updates$/& trixie-backports/"


def command(
    *folders: Annotated[Path, Parameter(help="of implementations, such as <tree>/frameworks/Go/fasthttp")],
    image: Annotated[tuple[str, ...], Parameter(help="images by name", consume_multiple=True)] = (),
    listed: Annotated[bool, Parameter(name="--list", help="say what would stand in, make nothing")] = False,
) -> int:
    """Make Debian with the toolchain, under the names of base images that no registry gives here.

    Images that are here stay as they are. Exit code 1 when an image has no recipe or could not be made.
    """
    images = tuple(dict.fromkeys((*image, *_asked(folders))))
    if not images:
        raise UsageError("give folders of implementations, or --image NAME")
    recipes = {name: recipe_for(name) for name in images}
    if listed:
        for name, recipe in recipes.items():
            print(f"{name}: {f'{recipe.kind} ({recipe.suite})' if recipe else 'no recipe'}")
        return Exit.OK
    engine()
    if docker("image", "inspect", BASE).status != 0:
        raise BuildError(f"{BASE} is not here: docker/bootstrap-base makes it")
    failed = False
    for name, recipe in recipes.items():
        reason = make(name)
        failed |= bool(reason)
        print(f"{name}: {reason or (f'here ({recipe.kind})' if recipe else 'here')}", flush=True)
    return Exit.FAILED if failed else Exit.OK


def _asked(folders: Iterable[Path]) -> Iterator[str]:
    for folder in folders:
        if not (folder / CONFIG_FILE).is_file():
            raise UsageError(f"{folder} holds no {CONFIG_FILE}: give the folder of an implementation")
        for path in sorted(folder.rglob("*.dockerfile")):
            yield from of_file(path)


def make(image: str) -> str:
    """Make an image that is not here, pulled or made before; why there is none, empty where it is here."""
    if inspect("image", image) is not None:
        return ""
    recipe = recipe_for(image)
    if recipe is None:
        return "no recipe: its toolchain is not among Debian's packages"
    folder = Path(tempfile.gettempdir()) / "tfb-stand-ins"
    folder.mkdir(parents=True, exist_ok=True)
    if recipe.suite != STABLE and inspect("image", base_of(recipe)) is None:
        command = [str(FOLDER / "bootstrap-base"), "--suite", recipe.suite]
        if reason := _run(command, folder / f"{recipe.suite}.log"):
            return f"{base_of(recipe)} {reason}"
    tag = image.rpartition(":")[2] if ":" in image.rpartition("/")[2] else ""
    file = folder / f"{recipe.kind}.dockerfile"
    file.write_text(dockerfile(recipe, tag), encoding="utf-8")
    command = [client() or "docker", "buildx", "build", "--load", "--file", str(file), "--tag", image, str(SCRIPTS)]
    return _run(command, folder / f"{recipe.kind}.log")


def _run(command: Sequence[str], log: Path) -> str:
    done = process.run(command, seconds=BUILD_SECONDS, log=log)
    return "" if done.status == 0 else f"could not be made:\n{process.tail(log)}\nlog: {log}"


def base_of(recipe: Recipe) -> str:
    """The image of its Debian release."""
    return BASE if recipe.suite == STABLE else f"tfb/debian:{recipe.suite}"


def dockerfile(recipe: Recipe, tag: str) -> str:
    """The file that makes it; ``tag`` is what stands behind the colon of the name asked for."""
    newer = [name for name in recipe.packages if recipe.backports and name in NEWER]
    # What many have in common first, the tag's version last: the engine then makes each layer once for all of them.
    left = [name for name in recipe.packages if name not in newer]
    steps = []
    for group in (USUAL, COMPILERS[len(USUAL) :]):
        if set(group) <= set(left):
            steps.append([_install(group)])
            left = [name for name in left if name not in group]
    steps += [[_install(left)]] if left else []
    if newer:
        steps += [[f"sed -i '{BACKPORTS}' /etc/apt/sources.list.d/debian.sources", _install(newer, "trixie-backports")]]
    caches = " ".join(
        f"--mount=type=cache,id={recipe.suite}-{place},target=/var/{place},sharing=locked"
        for place in ("cache/apt", "lib/apt")
    )
    lines = [
        f"FROM {base_of(recipe)}",
        "RUN rm -f /etc/apt/apt.conf.d/docker-clean && mkdir -p /usr/share/man/man1",
        *(f"RUN {caches} \\\n    " + " \\\n    && ".join(step) for step in steps),
        f"ARG TAG={tag or 'latest'}",
        *(f"ENV {variable}" for variable in recipe.variables),
        *(f"COPY --chmod=755 {script} /usr/local/bin/" for script in recipe.scripts),
        *(f"RUN {command}" for command in recipe.commands),
        f'LABEL {STAND_IN_LABEL}="{recipe.kind}: Debian {recipe.suite}"',
        f"WORKDIR {recipe.workdir}",
        f"CMD {recipe.command}",
    ]
    return "\n".join(lines) + "\n"


def _install(packages: Sequence[str], release: str = "") -> str:
    return " ".join([INSTALL, *(["--target-release", release] if release else []), *packages])
