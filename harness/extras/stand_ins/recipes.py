"""What stands in for base images: Debian packages of the release that fits the tag, commands and variables. Pure."""

import re
import sys
from dataclasses import dataclass, replace

USUAL = ("ca-certificates", "curl", "wget", "git", "gnupg", "unzip", "xz-utils", "procps")
COMPILERS = (*USUAL, "build-essential", "pkg-config", "libssl-dev", "zlib1g-dev", "libpq-dev", "cmake")
STABLE = "trixie"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
NODE_CERTIFICATES = f"NODE_EXTRA_CA_CERTS={CERTIFICATES}"
UTF8 = "LANG=C.UTF-8"


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
    # What the tag says of the version, as a regular expression with one group; empty: the stable release for every tag.
    version: str = ""
    suite: str = STABLE
    command: str = '["bash"]'


# Newest version -> the Debian release that has the versions up to it; of Java also which version that is.
PYTHON = {(3, 9): "bullseye", (3, 11): "bookworm", (3, 13): STABLE, (99,): "sid"}
JAVA = {8: (8, "sid"), 11: (11, "sid"), 17: (17, "sid"), 21: (21, STABLE), 99: (25, STABLE)}
JAVA_VERSION = r"(?:jdk|jre|temurin|corretto|openjdk|zulu|all)-?(\d+)"  # in a tag that begins with another's version

# Those that are packages alone: names, what they share, and what is their own.
PACKAGED = {
    "clojure": ("clojure", USUAL, "openjdk-25-jdk-headless leiningen rlwrap"),
    "composer": ("composer(/composer)?", USUAL, "php-cli composer"),
    "crystal": ("crystallang/crystal", COMPILERS, "crystal shards libyaml-dev"),
    "swift": ("swift", COMPILERS, "swiftlang"),
    "haskell": ("haskell", COMPILERS, "ghc cabal-install libgmp-dev"),
    "erlang": ("erlang", COMPILERS, "erlang rebar3"),
    "elixir": ("(hexpm/)?elixir", COMPILERS, "erlang elixir rebar3"),
    "nim": ("nimlang/nim", COMPILERS, "nim"),
    "ocaml": ("ocaml/opam", COMPILERS, "opam ocaml libev-dev libgmp-dev"),
    "racket": ("racket/racket", USUAL, "racket"),
    "pascal": ("freepascal/fpc", COMPILERS, "fpc p7zip-full"),
    "dlang": ("dlang2/(ldc|dmd)-ubuntu", COMPILERS, "ldc dub"),
    "prolog": ("swipl", USUAL, "swi-prolog-nox"),
    "lisp": ("clfoundation/sbcl|daewok/sbcl", COMPILERS, "sbcl cl-quicklisp"),
    "compilers": (
        "gcc|buildpack-deps|silkeh/clang",
        COMPILERS,
        "clang autoconf automake libtool gfortran libuv1-dev libyajl-dev",
    ),
}

RECIPES = (
    Recipe(
        kind="golang",
        names="golang",
        packages=(*COMPILERS, "golang-go"),
        variables=("GOPATH=/go", f"PATH=/go/bin:{PATH}"),
        workdir="/go",
        backports=True,
    ),
    Recipe(
        kind="node",
        names="node",
        packages=(*COMPILERS, "python3", "nodejs", "npm"),
        commands=(
            "npm install --global --no-audit --no-fund node@$(echo ${TAG%%[!0-9]*} | grep . || echo 24) yarn",
            "useradd --uid 1000 --create-home node",  # whom Dockerfiles name as their user
        ),
        variables=(NODE_CERTIFICATES,),
    ),
    Recipe(
        kind="bun",
        names="oven/bun",
        packages=(*USUAL, "nodejs", "npm"),
        commands=(
            "npm install --global --no-audit --no-fund bun@$(echo $TAG | grep -oE '^[0-9.]+' || echo 1)",
            "useradd --uid 1000 --create-home bun",
        ),
        variables=(NODE_CERTIFICATES,),
        workdir="/home/bun/app",
    ),
    Recipe(
        kind="deno",
        names="denoland/deno",
        packages=(*USUAL, "nodejs", "npm"),
        commands=(
            # The package begins with version 2; its start script finds the program beside it.
            "npm install --global --no-audit --no-fund deno@$(echo $TAG | grep -oE '^[2-9][0-9.]*' || echo latest)",
            "useradd --create-home deno && mkdir /deno-dir && chown deno /deno-dir",
        ),
        variables=(NODE_CERTIFICATES, "DENO_TLS_CA_STORE=system", "DENO_DIR=/deno-dir"),
    ),
    Recipe(
        kind="python",
        names="python",
        packages=(*COMPILERS, "python3-full", "python3-dev", "python3-pip", "libffi-dev"),
        commands=(
            "rm -f /usr/lib/python3*/EXTERNALLY-MANAGED",
            "ln -sf python3 /usr/bin/python",
            # In the place of the official image, which has none of Debian's own packages beside it.
            "python3 -m venv /usr/local && pip3 install --no-cache-dir --upgrade pip setuptools wheel virtualenv pipx",
        ),
        variables=(f"PIP_CERT={CERTIFICATES}",),
        version=r"^(\d+(?:\.\d+)?)",
    ),
    Recipe(
        kind="uv",
        names="astral-sh/uv",
        packages=("ca-certificates", "python3", "python3-pip"),
        commands=("pip3 install --no-cache-dir --break-system-packages uv && cp $(command -v uv uvx) /",),
        variables=(f"PIP_CERT={CERTIFICATES}",),
    ),
    Recipe(
        kind="rust",
        names="rust",
        packages=(*COMPILERS, "clang", "cargo", "rustc"),
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
        variables=(UTF8,),
        version=rf"{JAVA_VERSION}|^(\d+)",
    ),
    Recipe(kind="maven", names="maven", packages=(*USUAL, "maven"), variables=(UTF8,), version=JAVA_VERSION),
    Recipe(
        kind="sbt",
        scripts=("sbt",),
        names="sbtscala/scala-sbt|hseeberger/scala-sbt|mozilla/sbt",
        packages=(*USUAL, "maven"),
        commands=(
            # The launcher is on Maven Central, where it finds sbt, the compiler and most plugins.
            "mvn --quiet dependency:copy -DoutputDirectory=/usr/local/lib/sbt -Dartifact=org.scala-sbt:sbt-launch:"
            "$(echo $TAG | grep -oE '[_-]1\\.[0-9]+\\.[0-9]+' | tr -d '_-' | grep . || echo 1.10.11)",
        ),
        variables=(UTF8,),
        version=JAVA_VERSION,
    ),
    Recipe(
        kind="ruby",
        names="ruby",
        packages=(*COMPILERS, "ruby-full", "bundler", "libyaml-dev"),
        variables=(
            UTF8,
            "GEM_HOME=/usr/local/bundle",
            "BUNDLE_APP_CONFIG=/usr/local/bundle",
            f"PATH=/usr/local/bundle/bin:{PATH}",
        ),
    ),
    Recipe(
        kind="perl",
        names="perl",
        scripts=("cpanm",),
        packages=(*COMPILERS, "perl", "cpanminus", "carton", "libev-dev"),
        commands=(
            # In the place of Debian's own clients, which it calls where CPAN answers: a PATH may begin with /bin.
            "mkdir /usr/local/lib/cpan && mv /usr/bin/cpanm /usr/bin/carton /usr/local/lib/cpan/",
            "for name in cpanm carton cpm; do ln -s /usr/local/bin/cpanm /usr/bin/$name; done",
        ),
        variables=("PERL_MM_USE_DEFAULT=1",),
    ),
    Recipe(
        kind="php",
        names="php",
        packages=(*COMPILERS, "php-cli", "php-dev", "php-pgsql", "php-mbstring", "php-xml", "composer"),
        commands=(
            # The image's own way of adding extensions: Debian has them as packages.
            "for name in install enable configure; do printf '#!/bin/sh\\nexit 0\\n' "
            ">/usr/local/bin/docker-php-ext-$name; done && chmod 755 /usr/local/bin/docker-php-ext-*",
        ),
    ),
    Recipe(
        kind="nginx",
        names="nginx|openresty/openresty",
        packages=("ca-certificates", "nginx"),
        command='["nginx", "-g", "daemon off;"]',
    ),
    Recipe(
        kind="plain",
        names=r"ubuntu|debian|alpine|bitnami/minideb|distroless/\S+|cgr.dev/chainguard/\S+|busybox|rockylinux|fedora"
        r"|redhat/ubi\S*",
        packages=("ca-certificates",),
        commands=("id nonroot || useradd --uid 65532 --create-home nonroot",),
    ),
    *(
        Recipe(
            kind=kind,
            names=names,
            packages=(*shared, *own.split()),
            variables=(UTF8, f"HEX_CACERTS_PATH={CERTIFICATES}"),
        )
        for kind, (names, shared, own) in PACKAGED.items()
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
    return _released(recipe, tag) if recipe and recipe.version else recipe


def _released(recipe: Recipe, tag: str) -> Recipe:
    """With what its release adds; a tag without a version is the newest that the stable release has."""
    found = re.search(recipe.version, tag)
    parts = next(filter(None, found.groups())).split(".") if found else []
    if recipe.kind == "python":
        # "3" is the newest of them.
        wanted = (int(parts[0]), int(parts[1]) if len(parts) > 1 else sys.maxsize) if parts else (3, 13)
        return replace(recipe, suite=next(suite for newest, suite in PYTHON.items() if wanted[: len(newest)] <= newest))
    java = int(parts[0]) if parts else max(JAVA)
    version, suite = next(known for newest, known in JAVA.items() if java <= newest)
    home = f"/usr/lib/jvm/java-{version}-openjdk-amd64"
    return replace(
        recipe,
        suite=suite,
        packages=(*recipe.packages, f"openjdk-{version}-jdk-headless"),
        variables=(*recipe.variables, f"JAVA_HOME={home}", f"PATH={home}/bin:{PATH}"),
    )
