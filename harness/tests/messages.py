"""Lists tfb's messages: ``python -m harness.tests.messages`` prints each one with file and line."""

import re
from collections.abc import Iterator

from harness.tests.vocabulary import Text, product_files, texts

# Not messages: code in other languages, and names of files and packages.
CODE = re.compile(r"^\s*(SELECT|INSERT|UPDATE|DELETE|CREATE|ALTER|FROM |import |#!|<[a-z!])|^[\w.-]+(/[\w.-]+)+$")
COMMAND = re.compile(r"(?<![\w/])\./tfb\b")
# Modules whose docstrings are printed as help texts.
VERB_MODULE = re.compile(r"harness/(cli/\w+|extras/\w+/(cli|init|history))\.py")
WORD = re.compile(r"--?[a-z][\w=-]*|[A-Z]+(_[A-Z]+)*|\{\}")  # a word that may continue a command


def messages() -> Iterator[Text]:
    """Yield all texts that users may read: errors, warnings, notes, log lines and help texts."""
    for path in product_files():
        for text in texts(path):
            is_help = text.kind == "docstring" and text.line > 1 and VERB_MODULE.match(text.path)
            if is_help or (text.kind == "message" and not CODE.search(text.text)):
                yield text


def suggested_commands(text: str) -> Iterator[list[str]]:
    """Yield the arguments of each ``./tfb`` command in a text.

    In backticks, a command ends at the closing backtick. At the start of a line, it ends at two spaces or at the end of
    the line. Within a sentence, it consists of a verb, flags, placeholders in capital letters, and values (``{}``).
    """
    for match in COMMAND.finditer(text):
        before, after = text[: match.start()], text[match.end() :]
        if before.endswith("`"):
            yield after.partition("`")[0].split()
        elif not before.rpartition("\n")[2].strip() or before.endswith(": "):
            yield re.split(r"\n|  |;|, |\. |\.$", after)[0].split()
        else:
            verb, *others = [each.rstrip(".,:;)") for each in after.split()] or [""]
            end = next((number for number, each in enumerate(others) if not WORD.fullmatch(each)), len(others))
            yield [verb, *others[:end]]


if __name__ == "__main__":
    for message in messages():
        print(f"{message}\t{' '.join(message.text.split())}")
