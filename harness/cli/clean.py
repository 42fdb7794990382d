"""``./tfb clean``: removes the images that runs have left, and only what carries this project's label."""

from collections.abc import Sequence

from harness.cli.arguments import Parser
from harness.errors import Exit
from harness.runtime import compose
from harness.units import format_bytes


def main(argv: Sequence[str]) -> int:
    """Remove and say how much was freed."""
    p = Parser(prog="./tfb clean", description="Remove the images that runs have built; nothing without our label.")
    p.add_argument("--dry-run", action="store_true", help="say what would be removed")
    options = p.parse_args(list(argv))
    compose.engine()
    found = compose.images()
    for image in found:
        name = ", ".join(image["RepoTags"] or []) or image["Id"][7:19]
        print(f"{format_bytes(image['Size']):>9}  {name}")
    if options.dry_run or not found:
        print(f"{len(found)} images")
        return Exit.OK
    gone = compose.remove_images()
    print(f"removed {len(gone)} of {len(found)} images")
    return Exit.OK if len(gone) == len(found) else Exit.FAILED
