"""``./tfb clean``: removes the images that runs have left, and only what carries this project's label."""

from collections.abc import Sequence

from harness.cli.arguments import Parser
from harness.errors import Exit


def arguments() -> Parser:
    """The flags of ``./tfb clean``."""
    p = Parser(
        prog="./tfb clean",
        description="Remove the images that runs have built, those that a later build has replaced included. Images "
        "without this project's label, the base image and the build cache stay.",
    )
    p.add_argument("--dry-run", action="store_true", help="say what would be removed")
    return p


def main(argv: Sequence[str]) -> int:
    """Remove, and say what is left and why; exit code 1 when something had to stay."""
    from harness.servers import compose
    from harness.units import format_bytes

    options = arguments().parse_args(list(argv))
    compose.engine()
    found = compose.images()
    for image in found:
        print(f"{format_bytes(image['Size']):>9}  {compose.image_name(image)}")
    if options.dry_run or not found:
        print(f"{len(found)} images; layers that they share are counted with each")
        return Exit.OK
    kept = compose.remove_images([name for image in found for name in image["RepoTags"] or [image["Id"]]])
    for name, reason in kept:
        print(f"stays: {name}: {reason}")
    print(f"removed {len(found) - len(kept)} of {len(found)} images; the engine still holds {compose.disk()}")
    return Exit.FAILED if kept else Exit.OK
