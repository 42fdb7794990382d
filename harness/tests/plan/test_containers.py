"""Tests for the Dockerfile parser, which finds base images and describes the resulting image."""

import pytest

from harness.plan.dockerfile import base_images, parse_recipe


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
def test_base_images_are_found(text: str, images: tuple[str, ...]) -> None:
    assert base_images(text) == images


@pytest.mark.parametrize(
    ("text", "command", "user", "copied"),
    [
        ('FROM a\nCOPY . .\nUSER app\nCMD ["./server", "x"]\n', ("./server", "x"), "app", (".",)),
        ("from a\ncopy x y /app/\nuser 1000\ncmd exec ./server --port 1\n", ("exec", "./server", "--port", "1"), "1000",
         ("x", "y")),
        ('FROM a AS build\nUSER root\nCOPY a.c .\nFROM b\nCOPY --from=build /x /x\nCMD ["x"]\n', ("x",), None,
         ("a.c",)),
        ('FROM a\nCMD ["s.js"]\nENTRYPOINT ["node"]\n', ("node", "s.js"), None, ()),
        ('FROM a AS base\nUSER app\nFROM base\nENTRYPOINT ["node"]\nCMD ["s.js"]\n', ("node", "s.js"), "app", ()),
        ("FROM a\nCOPY --chown=app:app \\\n  # a comment\n  one two \\\n  /app/\n", (), None, ("one", "two")),
        ('FROM a\nCOPY ["with space", "/x/"]\nADD https://example.org/x.tgz /x\n', (), None, ("with space",)),
        ("FROM a\nCMD broken \"quote\nUSER\n", ("broken", '"quote'), "", ()),
        ("", (), None, ()),
    ],
)  # fmt: skip
def test_last_stage_determines_the_image(
    text: str, command: tuple[str, ...], user: str | None, copied: tuple[str, ...]
) -> None:
    recipe = parse_recipe(text)
    assert (recipe.command, recipe.user, recipe.source_paths) == (command, user, copied)
