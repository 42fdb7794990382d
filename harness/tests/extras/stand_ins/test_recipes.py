"""Stand-ins: which recipe fits a name, and what is made of it."""

import re
from dataclasses import replace

import pytest

from harness.extras.stand_ins.make import dockerfile
from harness.extras.stand_ins.recipes import RECIPES, Recipe, recipe_for
from harness.runtime.compose import STAND_IN_LABEL


@pytest.mark.parametrize(
    ("image", "kind"),
    [
        ("docker.io/golang:1.24.2", "golang"),
        ("perl:5.42", "perl"),
        ("node:24-slim", "node"),
        ("denoland/deno:1.46.1", "deno"),
        ("library/python:3.13", "python"),
        ("docker.io/library/rust:1.91-slim-bookworm@sha256:00", "rust"),
        ("maven:3.9.9-eclipse-temurin-24", "maven"),
        ("sbtscala/scala-sbt:eclipse-temurin-21.0.6_7_1.10.11_2.13.16", "sbt"),
        ("container-registry.oracle.com/java/openjdk:25.0.2", "jdk"),
        ("gcr.io/distroless/cc-debian12", "plain"),
        ("buildpack-deps:focal", "compilers"),
        ("freepascal/fpc:3.2.2-focal-full", "pascal"),
        ("mcr.microsoft.com/dotnet/sdk:10.0", None),
        ("somebody/node:1", None),
    ],
)
def test_a_recipe_is_found_by_the_whole_name(image: str, kind: str | None) -> None:
    recipe = recipe_for(image)
    assert (recipe.kind if recipe else None) == kind


@pytest.mark.parametrize(
    ("image", "suite", "package"),
    [
        ("python:3.9-bullseye", "bullseye", "python3-dev"),
        ("python:3.10-slim", "bookworm", "python3-dev"),
        ("python:3.13", "trixie", "python3-dev"),
        ("python:3.14-bookworm", "sid", "python3-dev"),
        ("python:3", "sid", "python3-dev"),
        ("python", "trixie", "python3-dev"),
        ("maven:3.5.3-jdk-8", "sid", "openjdk-8-jdk-headless"),
        ("maven:3.6.1-jdk-11-slim", "sid", "openjdk-11-jdk-headless"),
        ("maven:3.9.9-eclipse-temurin-24", "trixie", "openjdk-25-jdk-headless"),
        ("maven:3.9", "trixie", "openjdk-25-jdk-headless"),
        ("openjdk:11.0.3-jdk-slim", "sid", "openjdk-11-jdk-headless"),
        ("openjdk:17.0.2", "sid", "openjdk-17-jdk-headless"),
        ("eclipse-temurin:21-jre-jammy", "trixie", "openjdk-21-jdk-headless"),
        ("sbtscala/scala-sbt:eclipse-temurin-21.0.6_7_1.10.11_2.13.16", "trixie", "openjdk-21-jdk-headless"),
    ],
)
def test_the_release_is_the_one_that_has_the_version_of_the_tag(image: str, suite: str, package: str) -> None:
    recipe = recipe_for(image)
    assert recipe is not None
    assert recipe.suite == suite
    assert package in recipe.packages
    base = "debian:trixie-slim" if suite == "trixie" else f"tfb/debian:{suite}"
    assert dockerfile(recipe, "x").startswith(f"FROM {base}\n")


@pytest.mark.parametrize("image", ["alpine:3.19", "golang:1.25-alpine3.22", "maven:3-eclipse-temurin-25-alpine"])
def test_an_alpine_image_has_apk(image: str) -> None:
    recipe = recipe_for(image)
    assert recipe is not None
    assert "COPY --chmod=755 apk /usr/local/bin/" in dockerfile(recipe, "x")
    assert "apk" not in dockerfile(replace(recipe, scripts=()), "x")


@pytest.mark.parametrize(
    ("image", "user"), [("node:20-slim", "node"), ("oven/bun:1.1", "bun"), ("denoland/deno", "deno")]
)
def test_the_user_that_an_image_has_for_dockerfiles_to_name_is_there(image: str, user: str) -> None:
    recipe = recipe_for(image)
    assert recipe is not None
    (line,) = [line for line in dockerfile(recipe, "1").splitlines() if "useradd" in line]
    assert re.search(rf"useradd .*--create-home {user}\b", line)


def test_a_stand_in_is_debian_with_the_toolchain_and_a_label_that_says_so() -> None:
    recipe = recipe_for("node:24")
    assert recipe is not None
    text = dockerfile(recipe, "24")
    assert text.startswith("FROM debian:trixie-slim\n")
    assert "ARG TAG=24\n" in text
    assert f'LABEL {STAND_IN_LABEL}="node: Debian trixie"' in text


def _packages(image: str) -> list[str]:
    recipe = recipe_for(image)
    assert recipe is not None
    return dockerfile(recipe, image.rpartition(":")[2]).partition("ARG TAG")[0].split("RUN ")


@pytest.mark.parametrize(
    ("one", "other", "steps"),
    [
        ("node:24-slim", "node:20.16-slim", 5),  # all packages: FROM and four steps
        ("node:24-slim", "ruby:4.0", 4),  # all but the languages themselves
        ("maven:3-eclipse-temurin-25", "node:20", 3),  # what all of them have
    ],
)
def test_stand_ins_share_the_layers_of_the_packages_that_they_have_in_common(one: str, other: str, steps: int) -> None:
    same = [a == b for a, b in zip(_packages(one), _packages(other), strict=False)]
    assert same.index(False) if False in same else len(same) == steps


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.kind)
def test_every_package_of_a_recipe_is_installed_once(recipe: Recipe) -> None:
    words = dockerfile(replace(recipe, commands=()), "1").split()
    assert [words.count(name) for name in recipe.packages] == [1] * len(recipe.packages)


def test_newer_toolchains_come_from_backports() -> None:
    recipe = recipe_for("rust:1.85")
    assert recipe is not None
    lines = dockerfile(recipe, "1.85").splitlines()
    (newer,) = [line for line in lines if "--target-release trixie-backports" in line]
    assert newer.endswith("cargo rustc")
