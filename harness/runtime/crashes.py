"""Finds crashes, exceptions and errors in a server's log."""

import re
from pathlib import Path

from harness.host import process
from harness.plain_text import printable

LOG_BYTES = 1 << 20  # maximum number of bytes to search in a log
NO_REASON = "Traceback (most recent"  # start of a Python traceback's first line, which does not name the exception
LINE_CHARACTERS = 500  # longer lines are cut, because the patterns can take quadratic time

# Messages of programs that crash. The named groups capture the exception. Python prints it after the indented frames,
# Node.js after the marked source line, and Perl before the message about the abort.
_EXCEPTIONS = re.compile(
    r"Traceback \(most recent call last\):\n(?:[ \t|+].*\n|\n){0,300}(?P<python>[^\s|+].*)"
    r"|^(?P<go>(?:panic|fatal error): .+)"
    r"|^(?P<rust>thread '.+' (?:\(\d+\) )?panicked at .+(?:\n(?!note:|stack).+)?)"
    r"|^(?P<jvm>Exception in thread \".+)"
    r"|^[ \t]*\^+\n\n(?P<node>\S.*)"
    r"|^(?P<javascript>(?:Uncaught )?\w*(?:Error|Exception): .+)(?=\n(?:.*\n){0,5}?\s+at )"
    r"|^(?P<ruby>.+:\d+:in .+ \(\w+(?:Error|Exception)\))"
    r"|^(?P<perl>.+ at \S+ line \d+[.,].*)(?=\n(?:.*\n){0,5}?(?:BEGIN failed|Compilation failed"
    r"|Execution of .+ aborted))"
    r"|^Unhandled exception:\n(?P<dart>.+)"
    r"|^(?P<unhandled>(?:Error: )?[Uu]nhandled exception: .+)"
    r"|^(?P<swift>(?:\S+:\d+: )?Fatal error: .+)"
    r"|^(?P<zig>thread \d+ panic: .+)"
    r"|^(?P<julia>ERROR: LoadError: .+)"
    r"|^(?P<lua>lua\S*: \S+:\d+: .+)"
    r"|^(?P<haskell>\S+: .+)(?=\nCallStack \(from HasCallStack\))"
    r"|^(?P<r>Error\b.*:.*(?:\n  .+)?)(?=\n(?:.*\n){0,3}?Execution halted)"
    r"|^(?P<d>[\w.]+@\S+\(\d+\): .+)"
    r"|^(?P<erlang>\{\"init terminating in do_boot\".+)",
    re.MULTILINE,
)
_WORKERS = re.compile(
    r"^(?!.*(?:(?:code|status)\W*0\b|clean|normal|graceful))(?:"
    r".*\b(?:worker|child)\b.{0,80}\b(?:died|crashed|exited|terminated|killed|failed to boot)\b.*"
    r"|.*\b(?:unexpected exit|early termination) (?:from|of) worker.*)",
    re.MULTILINE | re.IGNORECASE,
)
# Exceptions that a server may survive. They include exceptions that a logger prints after a prefix, panics in a Go
# handler, and exceptions of .NET, PHP, Sinatra, Rails, Puma, Elixir and C++.
_SURVIVED = re.compile(
    r"(?<![\w.$])(?P<logged>(?:Caused by: )?(?:[\w$]+\.)*[\w$]*(?:Error|Exception|Throwable)(?:: .+)?)(?=\n[ \t]+at )"
    r"|(?P<handler>\bhttp: panic serving .+)"
    r"|(?P<panic>\bpanicked at .+(?:\n(?!note:|stack).+)?)"
    r"|^(?P<net>Unhandled exception\. .+)"
    r"|(?P<php>\bPHP (?:Fatal|Parse) error: .+)"
    r"|(?P<rack>\b(?:[A-Z]\w*::)*[A-Z]\w* (?:- .+|\(.+\)): *)(?=\n\s{1,9}\S.*:\d+:in )"
    r"|(?P<puma>\bRack app \(.+\): #<.+>)"
    r"|(?P<elixir>\*\* \([\w.]*(?:Error|exit|EXIT)[\w.]*\).+)"
    r"|^(?P<native>terminate called after throwing.+|Segmentation fault.*)|(?P<memory>\bdouble free or corruption.*)"
    r"|(?P<unhandled>\b(?:uncaughtException|unhandledRejection|Unhandled (?:promise )?rejection)\b.*)",
    re.MULTILINE,
)
# Lines that a logger marks as errors. They are used only if no other pattern matches.
_ERROR_LINES = re.compile(
    r"^(?=[Ee]rror: |.{0,200}?(?:\b(?:ERROR|SEVERE|FATAL|CRITICAL|PANIC)\b|\[(?:error|fatal|crit)\]"
    r"|\"level\": ?\"(?:error|fatal)\"))(?P<line>.+)$",
    re.MULTILINE,
)

_COLOUR = re.compile(r"\x1b\[[0-9;]{0,20}m")


def read_log(log: Path, begin: int) -> str:
    """Return up to ``LOG_BYTES`` of a log from byte ``begin``. If the log is shorter than ``begin``, return its end."""
    try:
        size = log.stat().st_size
        with log.open("rb") as file:
            file.seek(begin if begin <= size else max(0, size - LOG_BYTES))
            return file.read(LOG_BYTES).decode(errors="replace").replace("\r\n", "\n")
    except OSError:
        return ""


def find_crashes(log: Path) -> list[str]:
    """Return a line for each crash in a log: first exceptions, then worker processes that exited."""
    text = _text(log, 0)
    return _lines(_EXCEPTIONS, text) + [_one_line(match[0]) for match in _WORKERS.finditer(text)]


def find_errors(log: Path, begin: int) -> list[str]:
    """Return up to three distinct exceptions after byte ``begin`` of a log. If there are none, return error lines."""
    text = _text(log, begin)
    messages = [each for each in find_exceptions(text) if not each.startswith(NO_REASON)] or _lines(_ERROR_LINES, text)
    distinct = {re.sub(r"\d+|0x[0-9a-f]+", "", each): each for each in reversed(messages)}
    return list(reversed(distinct.values()))[:3]


def find_exceptions(text: str) -> list[str]:
    """Return the crashes and the survived exceptions in a text, in order of occurrence."""
    by_line: dict[int, str] = {}
    for pattern in (_WORKERS, _SURVIVED, _EXCEPTIONS):
        for match in pattern.finditer(text):
            groups = [each for each in match.groups() if each]
            # Two patterns may match the same exception. These matches end on the same line, so use this line as the
            # key.
            by_line[text.count("\n", 0, match.end())] = _one_line(groups[0] if groups else match[0])
    return [by_line[line] for line in sorted(by_line)]


def crash_reason(name: str, how: str, log: Path) -> str:
    """Return a message that explains why a server exited and quotes the end of the log.

    The headline contains the first crash in the log or, if there is none, the last line.
    """
    last_lines = process.tail(log)
    if crash := next(iter(find_crashes(log)), ""):
        headline = f"{crash}: {how}"
    elif last := next((line for line in reversed(last_lines.splitlines()) if line.strip()), ""):
        headline = f"{how}; the last line of its log is: {_one_line(last)}"
    else:
        headline = f"{how}; its log is empty"
    return f"{name}: {headline}\n{last_lines}\nlog: {log}"


def _text(log: Path, begin: int) -> str:
    """Return the result of ``read_log`` without colours and with long lines shortened."""
    return "\n".join(line[:LINE_CHARACTERS] for line in _COLOUR.sub("", read_log(log, begin)).split("\n"))


def _lines(pattern: re.Pattern[str], text: str) -> list[str]:
    return [_one_line(next(filter(None, match.groups()))) for match in pattern.finditer(text)]


def _one_line(text: str) -> str:
    return printable(" ".join(text.split()))[:LINE_CHARACTERS]
