"""Stand-ins for base images on a machine that no registry answers: Debian with the toolchain, under the name asked for.

A stand-in is not the image: its versions are Debian's (or those of the language's own package registry), its libc is
glibc where the name says Alpine, and it is labelled, so that the results of what is built upon it say so.
"""

import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.errors import BuildError
from harness.host import process
from harness.paths import REPOSITORY
from harness.plan.dockerfile import of_file
from harness.runtime.compose import FOLDER, client, docker, inspect
from harness.runtime.stand_in_recipes import COMPILERS, STABLE, USUAL, Recipe, recipe_for

LABEL = "org.tfb.stand-in"  # on an image: what it is made of instead
BASE = "debian:trixie-slim"
BUILD_SECONDS = 1800.0
SCRIPTS = REPOSITORY / "toolset" / "provision" / "stand-ins"
INSTALL = "apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends"
NEWER = ("golang-go", "cargo", "rustc")  # taken from Debian's backports where a recipe says so
BACKPORTS = "s/^Suites: trixie trixie-updates$/& trixie-backports/"


@dataclass(frozen=True, kw_only=True)
class Made:
    """What became of one name."""

    image: str
    recipe: str  # empty: none knows it
    reason: str = ""  # why there is none; empty: it is here
    log: Path | None = None  # of what failed


def base_of(recipe: Recipe) -> str:
    """The image of its Debian release."""
    return BASE if recipe.suite == STABLE else f"tfb/debian:{recipe.suite}"


def dockerfile(recipe: Recipe, tag: str) -> str:
    """The file that makes it; ``tag`` is what stands behind the colon of the name asked for."""
    newer = [name for name in recipe.packages if recipe.backports and name in NEWER]
    own = [name for name in recipe.packages if name not in (*USUAL, *COMPILERS, *newer)]
    # What many have in common first, the tag's version last: the engine then makes each layer once for all of them.
    shared = [group for group in (USUAL, COMPILERS) if set(group) <= set(recipe.packages)]
    left = [name for group in (USUAL, COMPILERS) if group not in shared for name in group if name in recipe.packages]
    steps = [[_install(group)] for group in shared]
    steps += [[_install([*left, *own])]] if left or own else []
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
        f'LABEL {LABEL}="{recipe.kind}: Debian {recipe.suite}"',
        f"WORKDIR {recipe.workdir}",
        f"CMD {recipe.command}",
    ]
    return "\n".join(lines) + "\n"


def _install(packages: Sequence[str], release: str = "") -> str:
    words = [INSTALL, *(["--target-release", release] if release else []), *packages]
    return " ".join(words)


def is_stand_in(image: str) -> bool:
    """Whether the image of this name is one."""
    found = inspect("image", image)
    labels = ((found or {}).get("Config") or {}).get("Labels") or {}
    return LABEL in labels


def used_by(dockerfile: Path) -> tuple[str, ...]:
    """The base images of a Dockerfile that are stand-ins here."""
    return tuple(image for image in of_file(dockerfile) if is_stand_in(image))


def make(images: Sequence[str]) -> tuple[Made, ...]:
    """Make what is not here; an image that is here, pulled or made before, stays as it is."""
    return tuple(_make(image) for image in dict.fromkeys(images))


def _make(image: str) -> Made:
    recipe = recipe_for(image)
    kind = recipe.kind if recipe else ""
    if inspect("image", image) is not None:
        return Made(image=image, recipe=kind)
    if recipe is None:
        return Made(image=image, recipe="", reason="no recipe: its toolchain is not among Debian's packages")
    if reason := _make_base(recipe):
        return Made(image=image, recipe=kind, reason=reason)
    folder = Path(tempfile.gettempdir()) / "tfb-stand-ins"
    folder.mkdir(parents=True, exist_ok=True)
    tag = image.rpartition(":")[2] if ":" in image.rpartition("/")[2] else ""
    file = folder / f"{recipe.kind}.dockerfile"
    file.write_text(dockerfile(recipe, tag), encoding="utf-8")
    log = folder / f"{recipe.kind}.log"
    command = [client() or "docker", "buildx", "build", "--load", "--file", str(file), "--tag", image, str(SCRIPTS)]
    done = process.run(command, seconds=BUILD_SECONDS, log=log)
    if done.status != 0:
        return Made(image=image, recipe=kind, reason=f"could not be made:\n{process.tail(log)}\nlog: {log}", log=log)
    return Made(image=image, recipe=kind)


def _make_base(recipe: Recipe) -> str:
    """The Debian release that it builds upon; returns why it could not be made, empty where it is here."""
    if recipe.suite == STABLE or inspect("image", base_of(recipe)) is not None:
        return ""
    log = Path(tempfile.gettempdir()) / f"tfb-stand-ins-{recipe.suite}.log"
    done = process.run([str(FOLDER / "bootstrap-base"), "--suite", recipe.suite], seconds=BUILD_SECONDS, log=log)
    return "" if done.status == 0 else f"{base_of(recipe)} could not be made:\n{process.tail(log)}\nlog: {log}"


def require_base() -> None:
    """Raises BuildError where the base image of all stand-ins is not here."""
    if docker("image", "inspect", BASE).status != 0:
        raise BuildError(f"{BASE} is not here: docker/bootstrap-base makes it")


def hint(folder: Path, output: str) -> str:
    """What to do next where a build failed because no registry gave its base image; empty where that was not it."""
    if re.search(r"failed to resolve source metadata|pull access denied|failed to do request", output):
        return f"\nNo registry gives its base image: docker/bootstrap-base --for {folder} makes a stand-in"
    return ""
