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
from harness.request.dockerfile import of_file
from harness.servers.compose import client, docker, inspect

LABEL = "org.tfb.stand-in"  # on an image: what it is made of instead
BASE = "debian:trixie-slim"
BUILD_SECONDS = 1800.0
USUAL = ("ca-certificates", "curl", "wget", "git", "gnupg", "unzip", "xz-utils", "procps")
COMPILERS = ("build-essential", "pkg-config", "libssl-dev", "zlib1g-dev", "libpq-dev", "cmake")
INSTALL = "DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends"
NEWER = ("golang-go", "cargo", "rustc")  # taken from Debian's backports where a recipe says so
BACKPORTS = "s/^Suites: trixie trixie-updates$/& trixie-backports/"
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """What stands in for images whose names match: Debian packages, commands behind them, variables."""

    kind: str
    names: str  # a regular expression for the whole name, without registry and library/
    packages: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()
    workdir: str = "/"
    backports: bool = False
    command: str = '["bash"]'


RECIPES = (
    Recipe(
        kind="golang",
        names=r"golang",
        packages=(*USUAL, *COMPILERS, "golang-go"),
        variables=("GOPATH=/go", "PATH=/go/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"),
        workdir="/go",
        backports=True,
    ),
    Recipe(
        kind="node",
        names=r"node",
        packages=(*USUAL, *COMPILERS, "python3", "nodejs", "npm"),
        commands=("npm install --global --no-audit --no-fund node@$(echo ${TAG%%[!0-9]*} | grep . || echo 24) yarn",),
        variables=(f"NODE_EXTRA_CA_CERTS={CERTIFICATES}",),
    ),
    Recipe(
        kind="bun",
        names=r"oven/bun",
        packages=(*USUAL, "nodejs", "npm"),
        commands=("npm install --global --no-audit --no-fund bun@$(echo $TAG | grep -oE '^[0-9.]+' || echo 1)",),
        variables=(f"NODE_EXTRA_CA_CERTS={CERTIFICATES}",),
        workdir="/home/bun/app",
    ),
    Recipe(
        kind="python",
        names=r"python",
        packages=(*USUAL, *COMPILERS, "python3-full", "python3-dev", "python3-pip", "libffi-dev", "pipx"),
        commands=(
            "rm -f /usr/lib/python3*/EXTERNALLY-MANAGED",
            "ln -s python3 /usr/bin/python",
            "pip3 install --no-cache-dir --break-system-packages virtualenv",
        ),
        variables=(f"PIP_CERT={CERTIFICATES}", "PIP_BREAK_SYSTEM_PACKAGES=1"),
    ),
    Recipe(
        kind="rust",
        names=r"rust",
        packages=(*USUAL, *COMPILERS, "clang", "cargo", "rustc"),
        variables=(
            f"CARGO_HTTP_CAINFO={CERTIFICATES}",
            "CARGO_HOME=/usr/local/cargo",
            "PATH=/usr/local/cargo/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        ),
        backports=True,
    ),
    Recipe(
        kind="jdk",
        names=r"openjdk|eclipse-temurin|amazoncorretto|maven|bellsoft/liberica\S*|java/openjdk|azul/zulu\S*|sapmachine",
        packages=(*USUAL, "openjdk-25-jdk-headless", "maven"),
        variables=("JAVA_HOME=/usr/lib/jvm/java-25-openjdk-amd64", "LANG=C.UTF-8"),
    ),
    Recipe(
        kind="clojure",
        names=r"clojure",
        packages=(*USUAL, "openjdk-25-jdk-headless", "leiningen", "rlwrap"),
        variables=("LEIN_ROOT=1", "LANG=C.UTF-8"),
    ),
    Recipe(
        kind="ruby",
        names=r"ruby",
        packages=(*USUAL, *COMPILERS, "ruby-full", "bundler", "libyaml-dev"),
        variables=(
            "LANG=C.UTF-8",
            "GEM_HOME=/usr/local/bundle",
            "BUNDLE_APP_CONFIG=/usr/local/bundle",
            "PATH=/usr/local/bundle/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        ),
    ),
    Recipe(
        kind="perl",
        names=r"perl",
        packages=(*USUAL, *COMPILERS, "perl", "cpanminus", "libev-dev", "libpq-dev"),
        variables=("PERL_MM_USE_DEFAULT=1",),
    ),
    Recipe(
        kind="php",
        names=r"php",
        packages=(*USUAL, *COMPILERS, "php-cli", "php-dev", "php-pgsql", "php-mbstring", "php-xml", "composer"),
        commands=(
            # The image's own way of adding extensions: Debian has them as packages.
            "printf '#!/bin/sh\\nexit 0\\n' >/usr/local/bin/docker-php-ext-install",
            "cp /usr/local/bin/docker-php-ext-install /usr/local/bin/docker-php-ext-enable",
            "cp /usr/local/bin/docker-php-ext-install /usr/local/bin/docker-php-ext-configure",
            "chmod 755 /usr/local/bin/docker-php-ext-*",
        ),
    ),
    Recipe(kind="composer", names=r"composer(/composer)?", packages=(*USUAL, "php-cli", "composer")),
    Recipe(
        kind="uv",
        names=r"astral-sh/uv",
        packages=("ca-certificates", "python3", "python3-pip"),
        commands=("pip3 install --no-cache-dir --break-system-packages uv && cp $(command -v uv uvx) /",),
        variables=(f"PIP_CERT={CERTIFICATES}",),
    ),
    Recipe(
        kind="crystal", names=r"crystallang/crystal", packages=(*USUAL, *COMPILERS, "crystal", "shards", "libyaml-dev")
    ),
    Recipe(kind="swift", names=r"swift", packages=(*USUAL, *COMPILERS, "swiftlang")),
    Recipe(kind="haskell", names=r"haskell", packages=(*USUAL, *COMPILERS, "ghc", "cabal-install", "libgmp-dev")),
    Recipe(kind="erlang", names=r"erlang", packages=(*USUAL, *COMPILERS, "erlang", "rebar3")),
    Recipe(
        kind="elixir",
        names=r"(hexpm/)?elixir",
        packages=(*USUAL, *COMPILERS, "erlang", "elixir", "rebar3"),
        variables=("LANG=C.UTF-8", f"HEX_CACERTS_PATH={CERTIFICATES}"),
    ),
    Recipe(kind="nim", names=r"nimlang/nim", packages=(*USUAL, *COMPILERS, "nim")),
    Recipe(
        kind="ocaml", names=r"ocaml/opam", packages=(*USUAL, *COMPILERS, "opam", "ocaml", "libev-dev", "libgmp-dev")
    ),
    Recipe(kind="racket", names=r"racket/racket", packages=(*USUAL, "racket")),
    Recipe(kind="pascal", names=r"freepascal/fpc", packages=(*USUAL, *COMPILERS, "fpc", "p7zip-full")),
    Recipe(kind="dlang", names=r"dlang2/(ldc|dmd)-ubuntu", packages=(*USUAL, *COMPILERS, "ldc", "dub")),
    Recipe(kind="prolog", names=r"swipl", packages=(*USUAL, "swi-prolog-nox")),
    Recipe(kind="lisp", names=r"clfoundation/sbcl|daewok/sbcl", packages=(*USUAL, *COMPILERS, "sbcl", "cl-quicklisp")),
    Recipe(
        kind="compilers",
        names=r"gcc|buildpack-deps|silkeh/clang",
        packages=(
            *USUAL,
            *COMPILERS,
            "clang",
            "autoconf",
            "automake",
            "libtool",
            "gfortran",
            "libuv1-dev",
            "libyajl-dev",
        ),
    ),
    Recipe(
        kind="nginx",
        names=r"nginx|openresty/openresty",
        packages=("ca-certificates", "nginx"),
        command='["nginx", "-g", "daemon off;"]',
    ),
    Recipe(
        kind="plain",
        names=r"ubuntu|debian|alpine|bitnami/minideb|distroless/\S+|cgr.dev/chainguard/\S+|busybox|rockylinux|fedora|redhat/ubi\S*",
        packages=("ca-certificates",),
    ),
)


@dataclass(frozen=True, kw_only=True)
class Made:
    """What became of one name."""

    image: str
    recipe: str  # empty: none knows it
    reason: str = ""  # why there is none; empty: it is here


def recipe_for(image: str) -> Recipe | None:
    """The recipe whose names match, registry and namespace of official images left out."""
    name = image.partition("@")[0]
    first, slash, rest = name.partition("/")
    if slash and ("." in first or ":" in first or first == "localhost"):
        name = rest
    name = name.removeprefix("library/").partition(":")[0]
    return next((recipe for recipe in RECIPES if re.fullmatch(recipe.names, name)), None)


def dockerfile(recipe: Recipe, tag: str) -> str:
    """The file that makes it; ``tag`` is what stands behind the colon of the name asked for."""
    newer = [name for name in recipe.packages if recipe.backports and name in NEWER]
    steps = [
        "rm -f /etc/apt/apt.conf.d/docker-clean",
        "mkdir -p /usr/share/man/man1",
        *([f"sed -i '{BACKPORTS}' /etc/apt/sources.list.d/debian.sources"] if newer else []),
        "apt-get update",
        f"{INSTALL} {' '.join(name for name in recipe.packages if name not in newer)}",
        *([f"{INSTALL} --target-release trixie-backports {' '.join(newer)}"] if newer else []),
    ]
    caches = " ".join(f"--mount=type=cache,target=/var/{place},sharing=locked" for place in ("cache/apt", "lib/apt"))
    lines = [
        f"FROM {BASE}",
        f"ARG TAG={tag or 'latest'}",
        f"RUN {caches} \\\n    " + " \\\n    && ".join(steps),
        *(f"ENV {variable}" for variable in recipe.variables),
        *(f"RUN {command}" for command in recipe.commands),
        f'LABEL {LABEL}="{recipe.kind}: Debian trixie"',
        f"WORKDIR {recipe.workdir}",
        f"CMD {recipe.command}",
    ]
    return "\n".join(lines) + "\n"


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
    folder = Path(tempfile.gettempdir()) / "tfb-stand-ins"
    folder.mkdir(parents=True, exist_ok=True)
    tag = image.rpartition(":")[2] if ":" in image.rpartition("/")[2] else ""
    file = folder / f"{recipe.kind}.dockerfile"
    file.write_text(dockerfile(recipe, tag), encoding="utf-8")
    log = folder / f"{recipe.kind}.log"
    command = [client() or "docker", "buildx", "build", "--load", "--file", str(file), "--tag", image, str(folder)]
    done = process.run(command, seconds=BUILD_SECONDS, log=log)
    if done.status != 0:
        return Made(image=image, recipe=kind, reason=f"could not be made:\n{process.tail(log)}\nlog: {log}")
    return Made(image=image, recipe=kind)


def require_base() -> None:
    """Raises BuildError where the base image of all stand-ins is not here."""
    if docker("image", "inspect", BASE).status != 0:
        raise BuildError(f"{BASE} is not here: docker/bootstrap-base makes it")


def hint(folder: Path, output: str) -> str:
    """What to do next where a build failed because no registry gave its base image; empty where that was not it."""
    if re.search(r"failed to resolve source metadata|pull access denied|failed to do request", output):
        return f"\nNo registry gives its base image: docker/bootstrap-base --for {folder} makes a stand-in"
    return ""
