"""Crashes are recognised in the logs of servers written in many programming languages."""

import time
from pathlib import Path

import pytest

from harness.runtime.crashes import crash_reason, find_errors

BEFORE = 'listening\nException in thread "main" java.lang.Error: of the start\n'


@pytest.mark.parametrize(
    ("log", "quoted"),
    [
        ("thread 'tokio-rt-worker' (77) panicked at src/main.rs:9:5:\nindex out of bounds\nnote: run", "index out of"),
        ("2026/11/28 15:00:00 http: panic serving 127.0.0.1:4242: boom\ngoroutine 8 [running]:", ":4242: boom"),
        ("panic: runtime error: nil map\n\ngoroutine 1 [running]:", "panic: runtime error: nil map"),
        ('ERROR app\nTraceback (most recent call last):\n  File "a.py", line 1\nValueError: odd', "ValueError: odd"),
        ("12:00 SEVERE [x] failed\njava.lang.NullPointerException: no row\n\tat a.B.c(B.java:1)", "no row"),
        ("2026 WARN io.x - java.io.IOException\n    at a.B", "java.io.IOException"),
        ("[err] uncaughtException: TypeError: x is not a function", "uncaughtException: TypeError"),
        ("/app/x.js:3\n  x.y()\n    ^\n\nTypeError: y is not a function\n    at x", "y is not a function"),
        ("Unhandled exception. System.IO.IOException: gone\n   at Program", "System.IO.IOException: gone"),
        ("PHP Fatal error:  Uncaught Exception: boom in /a.php:3", "Uncaught Exception: boom"),
        ("15:00:00.1 [error] GenServer #PID<0.1.0> terminating\n** (RuntimeError) boom", "(RuntimeError) boom"),
        ("app.rb:3:in `call': odd (RuntimeError)", "odd (RuntimeError)"),
        ("2026-11-28 17:10:33 - A::Bad - two words:\n\tapp.rb:8:in `block'", "A::Bad - two words"),
        ("E, [2026] ERROR\nNoMethodError (undefined method 'x'):\n  \napp/a.rb:3:in 'index'", "undefined method 'x'"),
        ('2026 Rack app ("GET /low" - (127.0.0.1)): #<RuntimeError: raw boom>', "#<RuntimeError: raw boom>"),
        ("2026-11-28 ERROR pool exhausted", "ERROR pool exhausted"),
        ('{"level":"error","msg":"pool exhausted"}', "pool exhausted"),
        ("Error: Connection terminated unexpectedly", "Connection terminated"),
        ("\x1b[31mERROR\x1b[0m \x1b[2Jit", "ERROR \\x1b[2Jit"),
    ],
)
def test_new_errors_in_log_are_quoted(log: str, quoted: str, tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text(f"{BEFORE}{log}\n")
    errors = find_errors(path, len(BEFORE))
    assert any(quoted in line for line in errors), errors
    assert not any("of the start" in line for line in errors)
    assert all(line.isprintable() and len(line) <= 500 for line in errors)


def test_ordinary_log_contains_no_errors(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text(f"{BEFORE}GET /errors 200\n0 errors\nERRORS: none\nno exception here\n")
    assert find_errors(path, len(BEFORE)) == []
    assert find_errors(tmp_path / "none", 0) == []


def test_repeated_panic_is_quoted_once(tmp_path: Path) -> None:
    path = tmp_path / "log"
    panic = "2026/11/28 15:00:{:02d} http: panic serving 127.0.0.1:{}: boom\n"
    path.write_text("".join(panic.format(n % 60, 4000 + n) for n in range(500)))
    assert len(find_errors(path, 0)) == 1


@pytest.mark.parametrize("part", ["Error ", "a.", "Error: ", "Error\n", "^\n", "** (", "panicked at ", "x" * 999])
def test_hostile_log_is_searched_quickly(part: str, tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text(part * ((1 << 20) // len(part)))
    started_at = time.monotonic()
    find_errors(path, 0)
    assert time.monotonic() - started_at < 10


@pytest.mark.parametrize(
    ("log", "headline"),
    [
        ("listening\nout of frobs\n\n", "x: it ended; the last line of its log is: out of frobs"),
        ("panic: nil map\n\ngoroutine 1 [running]:", "x: panic: nil map: it ended"),
        ("\n", "x: it ended; its log is empty"),
    ],
)
def test_headline_quotes_the_log(log: str, headline: str, tmp_path: Path) -> None:
    (tmp_path / "log").write_text(log)
    assert crash_reason("x", "it ended", tmp_path / "log").splitlines()[0] == headline
