"""``./tfb stand-ins FOLDER…``: stand-ins for the base images that folders ask for, where no registry answers."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.text import Text

from harness.cli.arguments import Parser
from harness.console import SafeConsole
from harness.errors import Exit, UsageError
from harness.plan import dockerfile
from harness.plan.discovery import CONFIG_FILE
from harness.runtime import stand_ins
from harness.runtime.compose import engine
from harness.runtime.stand_in_recipes import recipe_for


def main(argv: Sequence[str]) -> int:
    """Make what is missing; exit code 1 when an image has no recipe or could not be made."""
    p = Parser(
        prog="./tfb stand-ins",
        description="For machines that no registry answers: makes the base images that the Dockerfiles of these "
        "folders ask for, as Debian with the toolchain under the same name. They are labelled, and results say so. "
        "Images that are here stay as they are.",
    )
    p.add_argument("folders", nargs="*", metavar="FOLDER", help="such as <tree>/frameworks/Go/fasthttp")
    p.add_argument("--image", nargs="+", default=[], metavar="NAME", help="images by name")
    p.add_argument("--list", action="store_true", help="say what is asked for and what would stand in, make nothing")
    options = p.parse_args(list(argv))
    images = tuple(dict.fromkeys((*options.image, *_asked(map(Path, options.folders)))))
    if not images:
        raise UsageError("give folders of implementations, or --image NAME")
    console = SafeConsole()
    if options.list:
        for image in images:
            recipe = recipe_for(image)
            console.print(Text(f"{image}: {f'{recipe.kind} ({recipe.suite})' if recipe else 'no recipe'}"))
        return Exit.OK
    engine()
    stand_ins.require_base()
    failed = False
    for image in images:
        (made,) = stand_ins.make([image])
        failed |= bool(made.reason)
        style = "red" if made.reason else ""
        here = f"here ({made.recipe})" if not made.reason else made.reason
        console.print(Text(f"{image}: {here}", style))
    return Exit.FAILED if failed else Exit.OK


def _asked(folders: Iterator[Path]) -> Iterator[str]:
    for folder in folders:
        if not (folder / CONFIG_FILE).is_file():
            raise UsageError(f"{folder} holds no {CONFIG_FILE}: give the folder of an implementation")
        for path in sorted(folder.rglob("*.dockerfile")):
            yield from dockerfile.of_file(path)
