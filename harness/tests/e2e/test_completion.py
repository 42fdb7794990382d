"""Tab in the real shells: those that are installed here; bash is everywhere."""

import os
import pty
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from harness.paths import REPOSITORY

pytestmark = pytest.mark.e2e

SECONDS = 60.0  # for a shell to come to a prompt, or to answer; a busy machine takes its time
HERE = [shell for shell in ("bash", "zsh", "fish") if shell == "bash" or shutil.which(shell)]
SETUP = {
    "bash": (["bash", "--norc", "-i"], "bind 'set bell-style none'; eval \"$(./tfb --completion bash)\""),
    "zsh": (
        ["zsh", "-f", "-i"],
        'autoload -Uz compinit; compinit -u -D; unsetopt beep; eval "$(./tfb --completion zsh)"',
    ),
}


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """A home without settings, and ``tfb`` run by this very environment."""
    program = tmp_path / "tfb"
    program.write_text(f'#!/bin/sh\nPYTHONPATH={REPOSITORY} exec {sys.executable} -m harness "$@"\n')
    program.chmod(0o755)
    return {**os.environ, "HOME": str(tmp_path), "TERM": "dumb", "PS1": "READY> ", "PROMPT": "READY> "}


class Terminal:
    """What a shell shows on its terminal, read up to one text after another."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.seen = b""

    def type(self, text: str) -> None:
        os.write(self.descriptor, text.encode())

    def wait_for(self, text: str) -> None:
        """Pass over all up to this text; AssertionError with what came instead."""
        end = time.monotonic() + SECONDS
        while text.encode() not in self.seen:
            assert time.monotonic() < end, self.seen
            if select.select([self.descriptor], [], [], 1)[0]:
                self.seen += os.read(self.descriptor, 65536)
        self.seen = self.seen.partition(text.encode())[2]


def typed(shell: str, line: str, completed: str, folder: Path, environment: Mapping[str, str]) -> None:
    """Type a line and Tab into an interactive shell, and wait until it stands there completed."""
    argv, setup = SETUP[shell]
    child, descriptor = pty.fork()
    if child == 0:
        os.chdir(folder)
        os.execvpe(argv[0], argv, dict(environment))  # noqa: S606 - a shell, without a shell around it
    try:
        terminal = Terminal(descriptor)
        terminal.wait_for("READY> ")
        terminal.type(f"{setup}; echo S''ET\n")
        terminal.wait_for("SET\r\n")
        terminal.wait_for("READY> ")
        terminal.type(f"{line}\t")
        terminal.wait_for(f"{completed} ")
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(descriptor)


@pytest.mark.parametrize("shell", HERE)
@pytest.mark.parametrize(
    ("line", "completed"),
    [
        ("./tfb ver", "./tfb verify"),
        ("./tfb run --profile sta", "./tfb run --profile standard"),
        ("true; ./tfb run vertx-w", "./tfb run vertx-web"),
    ],
)
def test_tab_completes_in_the_shell_itself(
    shell: str, line: str, completed: str, tmp_path: Path, environment: dict[str, str]
) -> None:
    if shell != "fish":
        typed(shell, line, completed, tmp_path, environment)
        return
    script = f"./tfb --completion fish | source; complete -C'{line}'"
    answer = subprocess.run(
        ["fish", "--no-config", "-c", script],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=True,
    )
    assert answer.stdout.split() == completed.split()[-1:]
