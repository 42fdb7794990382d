"""Signals at any moment end a command in order, with a status of its own and without a traceback."""

import signal
import subprocess
import sys

import pytest

from harness.paths import REPOSITORY

WAITS = """
import time
from harness import cli
def main():
    try:
        print("ready", flush=True)
        time.sleep(60)
    finally:
        print("stopping", flush=True)
        time.sleep(0.3)
cli.main = main
import runpy
runpy.run_module("harness", run_name="__main__", alter_sys=True)
"""


def started(code: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, "-c", f"import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n{code}"],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_every_signal_ends_it_in_order_however_often_it_comes(number: signal.Signals) -> None:
    child = started(WAITS)
    assert child.stdout is not None
    assert child.stdout.readline() == b"ready\n"
    child.send_signal(number)
    assert child.stdout.readline() == b"stopping\n"
    child.send_signal(number)
    child.send_signal(signal.SIGTERM)
    _, errors = child.communicate(timeout=60)
    assert (child.returncode, errors) == (130, b"")


END = """
import os, signal
from harness import cli
from harness.host import process
def stop_all():
    os.kill(os.getpid(), signal.SIGTERM)
    print("stopped", flush=True)
process.stop_all = stop_all
def main():
    print("done", flush=True)
    return 0
cli.main = main
import atexit
atexit.register(lambda: os.kill(os.getpid(), signal.SIGTERM))
import runpy
runpy.run_module("harness", run_name="__main__", alter_sys=True)
"""


def test_a_signal_at_the_end_interrupts_neither_the_stopping_nor_the_exit() -> None:
    child = started(END)
    out, errors = child.communicate(timeout=60)
    assert (child.returncode, out, errors) == (0, b"done\nstopped\n", b"")
