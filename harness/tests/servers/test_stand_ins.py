"""Stand-ins: which recipe fits a name, and what is made of it."""

from pathlib import Path

import pytest

from harness.servers.stand_ins import LABEL, dockerfile, hint, recipe_for


@pytest.mark.parametrize(
    ("image", "kind"),
    [
        ("docker.io/golang:1.24.2", "golang"),
        ("node:24-slim", "node"),
        ("library/python:3.13", "python"),
        ("docker.io/library/rust:1.91-slim-bookworm@sha256:00", "rust"),
        ("maven:3.9.9-eclipse-temurin-24", "jdk"),
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


def test_a_stand_in_is_debian_with_the_toolchain_and_a_label_that_says_so() -> None:
    recipe = recipe_for("node:24")
    assert recipe is not None
    text = dockerfile(recipe, "24")
    assert text.startswith("FROM debian:trixie-slim\nARG TAG=24\n")
    assert f'LABEL {LABEL}="node: Debian trixie"' in text


def test_newer_toolchains_come_from_backports() -> None:
    recipe = recipe_for("rust:1.85")
    assert recipe is not None
    lines = dockerfile(recipe, "1.85").splitlines()
    (newer,) = [line for line in lines if "--target-release trixie-backports" in line]
    assert newer.endswith("cargo rustc")


def test_a_build_without_a_registry_says_what_makes_the_image() -> None:
    assert "docker/bootstrap-base --for /t/C/x" in hint(
        Path("/t/C/x"), "ERROR: failed to resolve source metadata for a:1"
    )
    assert hint(Path("/t/C/x"), "make: *** [all] Error 1") == ""
