"""What stands in for base images: Debian packages of the release that fits the tag, commands and variables. Pure."""

import re
import sys
from dataclasses import dataclass, replace

USUAL = ("ca-certificates", "curl", "wget", "git", "gnupg", "unzip", "xz-utils", "procps")
COMPILERS = ("build-essential", "pkg-config", "libssl-dev", "zlib1g-dev", "libpq-dev", "cmake")
STABLE = "trixie"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"


@dataclass(frozen=True, kw_only=True)
class Release:
    """The Debian release that has a language's versions up to one, and what differs there."""

    newest: tuple[int, ...]
    suite: str
    packages: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """What stands in for images whose names match: Debian packages, commands behind them, variables."""

    kind: str
    names: str  # a regular expression for the whole name, without registry and library/
    packages: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    scripts: tuple[str, ...] = ()  # of toolset/provision/stand-ins, put into /usr/local/bin
    variables: tuple[str, ...] = ()
    workdir: str = "/"
    backports: bool = False
    releases: tuple[Release, ...] = ()  # in order; none: the stable one for every tag
    version: str = r"^(\d+(?:\.\d+)?)"  # what the tag says of the version, as a regular expression with one group
    suite: str = STABLE
    command: str = '["bash"]'


JAVA_VERSION = r"(?:jdk|jre|temurin|corretto|openjdk|zulu|all)-?(\d+)"  # in a tag that begins with another's version
JAVA = tuple(
    Release(
        newest=(newest,),
        suite=suite,
        packages=(f"openjdk-{version}-jdk-headless",),
        variables=(
            f"JAVA_HOME=/usr/lib/jvm/java-{version}-openjdk-amd64",
            f"PATH=/usr/lib/jvm/java-{version}-openjdk-amd64/bin:{PATH}",
        ),
    )
    for newest, version, suite in (
        (8, 8, "sid"),
        (11, 11, "sid"),
        (17, 17, "sid"),
        (21, 21, STABLE),
        (99, 25, STABLE),
    )
)

RECIPES = (
    Recipe(
        kind="golang",
        names=r"golang",
        packages=(*USUAL, *COMPILERS, "golang-go"),
        variables=("GOPATH=/go", f"PATH=/go/bin:{PATH}"),
        workdir="/go",
        backports=True,
    ),
    Recipe(
        kind="node",
        names=r"node",
        packages=(*USUAL, *COMPILERS, "python3", "nodejs", "npm"),
        commands=(
            "npm install --global --no-audit --no-fund node@$(echo ${TAG%%[!0-9]*} | grep . || echo 24) yarn",
            "useradd --uid 1000 --create-home node",  # whom Dockerfiles name as their user
        ),
        variables=(f"NODE_EXTRA_CA_CERTS={CERTIFICATES}",),
    ),
    Recipe(
        kind="bun",
        names=r"oven/bun",
        packages=(*USUAL, "nodejs", "npm"),
        commands=(
            "npm install --global --no-audit --no-fund bun@$(echo $TAG | grep -oE '^[0-9.]+' || echo 1)",
            "useradd --uid 1000 --create-home bun",
        ),
        variables=(f"NODE_EXTRA_CA_CERTS={CERTIFICATES}",),
        workdir="/home/bun/app",
    ),
    Recipe(
        kind="deno",
        names=r"denoland/deno",
        packages=(*USUAL, "nodejs", "npm"),
        commands=(
            # The package begins with version 2; its start script finds the program beside it.
            "npm install --global --no-audit --no-fund deno@$(echo $TAG | grep -oE '^[2-9][0-9.]*' || echo latest)",
            "useradd --create-home deno && mkdir /deno-dir && chown deno /deno-dir",
        ),
        variables=(f"NODE_EXTRA_CA_CERTS={CERTIFICATES}", "DENO_TLS_CA_STORE=system", "DENO_DIR=/deno-dir"),
    ),
    Recipe(
        kind="python",
        names=r"python",
        packages=(*USUAL, *COMPILERS, "python3-full", "python3-dev", "python3-pip", "libffi-dev"),
        commands=(
            "rm -f /usr/lib/python3*/EXTERNALLY-MANAGED",
            "ln -sf python3 /usr/bin/python",
            # In the place of the official image, which has none of Debian's own packages beside it.
            "python3 -m venv /usr/local && pip3 install --no-cache-dir --upgrade pip setuptools wheel virtualenv pipx",
        ),
        variables=(f"PIP_CERT={CERTIFICATES}",),
        releases=(
            Release(newest=(3, 9), suite="bullseye"),
            Release(newest=(3, 11), suite="bookworm"),
            Release(newest=(3, 13), suite=STABLE),
            Release(newest=(99,), suite="sid"),
        ),
    ),
    Recipe(
        kind="rust",
        names=r"rust",
        packages=(*USUAL, *COMPILERS, "clang", "cargo", "rustc"),
        variables=(
            f"CARGO_HTTP_CAINFO={CERTIFICATES}",
            "CARGO_HOME=/usr/local/cargo",
            f"PATH=/usr/local/cargo/bin:{PATH}",
        ),
        backports=True,
    ),
    Recipe(
        kind="jdk",
        names=r"openjdk|eclipse-temurin|amazoncorretto|bellsoft/liberica\S*|(java|jdk)/openjdk|azul/zulu\S*|sapmachine",
        packages=(*USUAL, "maven"),
        variables=("LANG=C.UTF-8",),
        releases=JAVA,
        version=rf"{JAVA_VERSION}|^(\d+)",
    ),
    Recipe(
        kind="maven",
        names=r"maven",
        packages=(*USUAL, "maven"),
        variables=("LANG=C.UTF-8",),
        releases=JAVA,
        version=JAVA_VERSION,
    ),
    Recipe(
        kind="sbt",
        scripts=("sbt",),
        names=r"sbtscala/scala-sbt|hseeberger/scala-sbt|mozilla/sbt",
        packages=(*USUAL, "maven"),
        commands=(
            # The launcher is on Maven Central, where it finds sbt, the compiler and most plugins.
            "mvn --quiet dependency:copy -DoutputDirectory=/usr/local/lib/sbt -Dartifact=org.scala-sbt:sbt-launch:"
            "$(echo $TAG | grep -oE '[_-]1\\.[0-9]+\\.[0-9]+' | tr -d '_-' | grep . || echo 1.10.11)",
        ),
        variables=("LANG=C.UTF-8",),
        releases=JAVA,
        version=JAVA_VERSION,
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
            f"PATH=/usr/local/bundle/bin:{PATH}",
        ),
    ),
    Recipe(
        kind="perl",
        names=r"perl",
        scripts=("cpanm",),
        packages=(*USUAL, *COMPILERS, "perl", "cpanminus", "carton", "libev-dev"),
        commands=(
            # In the place of Debian's own clients, which it calls where CPAN answers: a PATH may begin with /bin.
            "mkdir /usr/local/lib/cpan && mv /usr/bin/cpanm /usr/bin/carton /usr/local/lib/cpan/",
            "for name in cpanm carton cpm; do ln -s /usr/local/bin/cpanm /usr/bin/$name; done",
        ),
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
        commands=("id nonroot || useradd --uid 65532 --create-home nonroot",),
    ),
)


def recipe_for(image: str) -> Recipe | None:
    """The recipe whose names match, for the release that its tag asks for; registry and library/ are left out."""
    name = image.partition("@")[0]
    first, slash, rest = name.partition("/")
    if slash and ("." in first or ":" in first or first == "localhost"):
        name = rest
    name, _, tag = name.removeprefix("library/").partition(":")
    recipe = next((recipe for recipe in RECIPES if re.fullmatch(recipe.names, name)), None)
    if recipe and (name == "alpine" or "alpine" in tag):
        recipe = replace(recipe, scripts=(*recipe.scripts, "apk"))
    return _released(recipe, tag) if recipe and recipe.releases else recipe


def _released(recipe: Recipe, tag: str) -> Recipe:
    """With what its release adds; a tag without a version is the newest that the stable release has."""
    found = re.search(recipe.version, tag)
    version = tuple(int(part) for part in next(filter(None, found.groups())).split(".")) if found else None
    releases = recipe.releases
    stable = [release for release in releases if release.suite == STABLE][-1]
    if version and len(version) < len(releases[0].newest):
        version = (*version, sys.maxsize)  # "3" is the newest of them
    fits = stable if version is None else next(one for one in releases if version[: len(one.newest)] <= one.newest)
    return replace(
        recipe,
        suite=fits.suite,
        packages=recipe.packages + fits.packages,
        variables=recipe.variables + fits.variables,
    )
