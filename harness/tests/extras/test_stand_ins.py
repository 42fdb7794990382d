"""docker/stand-ins: recipes chosen by image name, and scripts that replace package managers."""

import os
import runpy
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from harness.paths import REPOSITORY
from harness.runtime.compose import STAND_IN_LABEL
from harness.tests.scene import script

SCRIPTS = REPOSITORY / "docker" / "stand-ins"
MAKE = runpy.run_path(str(SCRIPTS / "make"))
recipe_for, dockerfile = MAKE["recipe_for"], MAKE["dockerfile"]


@pytest.mark.parametrize(
    ("image", "kind", "suite", "package"),
    [
        ("docker.io/golang:1.24.2", "golang", "trixie", "golang-go"),
        ("docker.io/library/rust:1.91-slim-bookworm@sha256:00", "rust", "trixie", "cargo"),
        ("gcr.io/distroless/cc-debian12", "plain", "trixie", "ca-certificates"),
        ("library/python:3.9-bullseye", "python", "bullseye", "python3-dev"),
        ("python:3.14-bookworm", "python", "sid", "python3-dev"),
        ("python:3", "python", "sid", "python3-dev"),
        ("maven:3.6.1-jdk-11-slim", "maven", "sid", "openjdk-11-jdk-headless"),
        ("maven:3.9.9-eclipse-temurin-24", "maven", "trixie", "openjdk-25-jdk-headless"),
        ("container-registry.oracle.com/java/openjdk:25.0.2", "jdk", "trixie", "openjdk-25-jdk-headless"),
        ("sbtscala/scala-sbt:eclipse-temurin-21.0.6_7_1.10.11_2.13.16", "sbt", "trixie", "openjdk-21-jdk-headless"),
    ],
)
def test_image_name_selects_recipe_and_tag_selects_release(image: str, kind: str, suite: str, package: str) -> None:
    recipe = recipe_for(image)
    assert (recipe.kind, recipe.suite) == (kind, suite)
    assert package in recipe.packages
    base = "debian:trixie-slim" if suite == "trixie" else f"tfb/debian:{suite}"
    assert dockerfile(recipe, "x").startswith(f"FROM {base}\n")


def test_images_without_debian_packages_have_no_recipe() -> None:
    assert [recipe_for(image) for image in ("mcr.microsoft.com/dotnet/sdk:10.0", "somebody/node:1")] == [None, None]
    for image in ("alpine:3.19", "golang:1.25-alpine3.22"):
        assert "COPY --chmod=755 apk /usr/local/bin/" in dockerfile(recipe_for(image), "x")


@pytest.mark.parametrize("recipe", MAKE["RECIPES"], ids=lambda recipe: recipe.kind)
def test_recipes_install_packages_once_and_set_a_label(recipe: object) -> None:
    text = dockerfile(replace(recipe, commands=()), "1")  # type: ignore[type-var]
    words = text.split()
    assert {words.count(name) for name in recipe.packages} == {1}  # type: ignore[attr-defined]
    assert f'LABEL {STAND_IN_LABEL}="' in text


def test_newer_toolchains_come_from_backports() -> None:
    (newer,) = [line for line in dockerfile(recipe_for("rust:1.85"), "1").splitlines() if "trixie-backports " in line]
    assert newer.endswith("cargo rustc")
    assert "useradd --uid 1000 --create-home node\n" in dockerfile(recipe_for("node:20-slim"), "1")


def test_list_shows_recipes_of_folders_and_names() -> None:
    words = [str(SCRIPTS / "make"), "--list", str(REPOSITORY / "frameworks" / "Rust" / "axum"), "node:24", "x/y"]
    completed = subprocess.run(words, capture_output=True, text=True, check=False)
    made = ["debian:trixie-slim: plain (trixie)", "node:24: node (trixie)", "x/y: no recipe"]
    assert completed.stdout.splitlines() == made, completed.stderr


CPANFILE = """requires 'perl', '5.020';
requires 'Mojolicious', '9.42';
requires "Mojo::Pg";
requires 'Scalar::Util';
#requires 'DBD::mysql';
recommends 'IO::Socket::IP';
"""


@pytest.fixture
def fakes(tmp_path: Path) -> Path:
    """Create fake package managers and return their folder. Installed packages are recorded in the file ``asked``."""
    folder = tmp_path / "bin"
    script(folder / "apt-cache", "case $2 in lib*carton-perl) exit 100 ;; carton) echo 'Section: perl' ;; esac")
    script(folder / "apt-get", f'[ "$1" = update ] || echo "$@" >>{tmp_path}/asked')
    script(folder / "timeout", "exit 1")  # CPAN is unreachable
    script(folder / "perl", "case $3 in Scalar::Util) ;; *) exit 1 ;; esac")  # only Scalar::Util is installed
    return folder


def _run(fakes: Path, script: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PATH": f"{fakes}:{os.environ['PATH']}", "HOME": str(fakes)}
    command = [str(script), *words]
    return subprocess.run(command, cwd=fakes.parent, env=environment, capture_output=True, text=True, check=False)


def _asked(fakes: Path) -> list[str]:
    words = (fakes.parent / "asked").read_text(encoding="utf-8").split()
    return [word for word in words if word not in ("install", "-y", "--no-install-recommends")]


def test_perl_modules_come_from_debian_packages(fakes: Path) -> None:
    completed = _run(
        fakes, SCRIPTS / "cpanm", "--notest", "-l", "/x", "Mojo::Pg", "JSON::XS@4.03", "Scalar::Util", "Carton"
    )
    assert completed.returncode == 0, completed.stderr
    assert _asked(fakes) == ["libmojo-pg-perl", "libjson-xs-perl", "carton"]
    assert "from Debian for 4.03" in completed.stderr


def test_carton_installs_requirements_and_runs_commands(fakes: Path) -> None:
    carton = fakes / "carton"
    carton.symlink_to(SCRIPTS / "cpanm")
    (fakes.parent / "modules").write_text(CPANFILE, encoding="utf-8")
    completed = _run(fakes, carton, "install", "--cpanfile", "modules")
    assert completed.returncode == 0, completed.stderr
    assert _asked(fakes) == ["libmojolicious-perl", "libmojo-pg-perl"]
    assert _run(fakes, carton, "exec", "echo", "a b").stdout == "a b\n"


PLUGINS = """addSbtPlugin("com.eed3si9n" % "sbt-assembly" % "0.14.6")
addSbtPlugin("com.typesafe.sbt"   % "sbt-twirl" % "1.5.1")
addSbtPlugin("com.eed3si9n" % "sbt-assembly" % "2.3.1")
addSbtPlugin("io.spray" % "sbt-revolver" % "0.9.1")
"""


def test_sbt_plugins_are_replaced_by_maven_central_versions(fakes: Path) -> None:
    script(fakes / "java", 'echo "$@"')
    project = fakes.parent / "project"
    project.mkdir()
    (project / "plugins.sbt").write_text(PLUGINS, encoding="utf-8")
    completed = _run(fakes, SCRIPTS / "sbt", "-batch", "-Dx=y", "-J-Xmx1g", "clean", "assembly")
    assert completed.returncode == 0, completed.stderr
    assert completed.stdout.split()[:3] == ["-Dsbt.override.build.repos=true", "-Dx=y", "-Xmx1g"]
    assert completed.stdout.split()[-2:] == ["clean", "assembly"]
    assert (project / "plugins.sbt").read_text(encoding="utf-8").splitlines() == [
        'addSbtPlugin("com.eed3si9n" % "sbt-assembly" % "1.2.0")',
        'addSbtPlugin("com.typesafe.play"   % "sbt-twirl" % "1.6.1")',
        'addSbtPlugin("com.eed3si9n" % "sbt-assembly" % "2.3.1")',
        'addSbtPlugin("io.spray" % "sbt-revolver" % "0.9.1")',
    ]
    assert (
        "using sbt-assembly 1.2.0 of com.eed3si9n, because Maven Central lacks the release in project/plugins.sbt"
        in completed.stderr
    )
    assert _run(fakes, SCRIPTS / "sbt", "clean").stderr == ""  # only the first call warns
