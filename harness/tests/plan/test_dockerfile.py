"""The images that a Dockerfile builds upon."""

import pytest

from harness.plan.dockerfile import base_images


@pytest.mark.parametrize(
    ("text", "images"),
    [
        ("FROM golang:1.24\nRUN x\n", ("golang:1.24",)),
        ("from --platform=linux/amd64 a/b:1 as build\nFROM build\nFROM scratch\n", ("a/b:1",)),
        ('ARG V=22.04\nFROM ubuntu:${V} AS a\nFROM "debian:$V"\n', ("ubuntu:22.04", "debian:22.04")),
        ("ARG V\nFROM x:${V:-3}\n", ("x:3",)),
        ('ARG A="1"\nARG B=x/y:${A}-z$A\nARG C="$B"\nFROM $C\n', ("x/y:1-z1",)),
        ("FROM a AS x\nFROM b\nCOPY --from=x /x /x\nCOPY --from=c:1 /y /y\nCOPY --from=0 /z /z\n", ("a", "b", "c:1")),
        ("FROM a\nRUN --mount=type=bind,from=d,target=/d ls\n", ("a", "d")),
        ("# FROM not\n", ()),
    ],
)
def test_images_are_found_under_the_names_asked_for(text: str, images: tuple[str, ...]) -> None:
    assert base_images(text) == images
