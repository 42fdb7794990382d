"""``./tfb clean``: removes the images that runs have left, and only what carries this project's label."""

import tempfile
from collections.abc import Sequence
from pathlib import Path

from harness.cli.arguments import Parser, hosts_of, hosts_of_run
from harness.errors import Exit, TfbError
from harness.request.hosts import Hosts


def arguments() -> Parser:
    """The flags of ``./tfb clean``."""
    p = Parser(
        prog="./tfb clean",
        description="Remove the images that runs have built, those that a later build has replaced included. Images "
        "without this project's label, the base image and the build cache stay. With --server-host and its like: "
        "what runs have left on those machines, containers included, whether they were lost in a run or not.",
    )
    p.add_argument("--dry-run", action="store_true", help="say what would be removed")
    hosts_of_run(p)
    return p


def main(argv: Sequence[str]) -> int:
    """Remove, and say what is left and why; exit code 1 when something had to stay."""
    from harness.servers import compose
    from harness.units import format_bytes

    options = arguments().parse_args(list(argv))
    if (machines := hosts_of(options)).elsewhere:
        return _on_machines(machines, dry_run=options.dry_run)
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


def _on_machines(hosts: Hosts, *, dry_run: bool) -> int:
    """Containers and images with this project's labels on every machine; exit code 1 when one is not reached."""
    from harness.servers import compose
    from harness.servers.machines.machine import reached

    lost = 0
    with tempfile.TemporaryDirectory(prefix="tfb-clean-") as scratch:
        for host in hosts.machines:
            try:
                with reached(host, Path(scratch)) as machine:
                    containers = (
                        compose.ids("ps", "--all", "--filter", f"label={compose.RUN_LABEL}", at=machine.at) or []
                    )
                    images = compose.ids("image", "ls", "--filter", f"label={compose.IMAGE_LABEL}", at=machine.at) or []
                    print(f"{machine.name}: {len(containers)} containers, {len(images)} images of runs")
                    if dry_run:
                        continue
                    if containers:
                        machine.docker("container", "rm", "--force", "--volumes", *containers, seconds=60)
                    for image in dict.fromkeys(images):
                        machine.docker("image", "rm", "--force", image, seconds=60)
            except TfbError as error:
                lost += 1
                print(f"stays: {host.text}: {error}")
    return Exit.FAILED if lost else Exit.OK
