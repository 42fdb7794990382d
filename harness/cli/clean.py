"""``./tfb clean``: removes what runs have left: images, and what those that were killed could not remove themselves."""

from typing import Annotated

from cyclopts import Parameter

from harness.cli.consent import agreed
from harness.cli.flags import Machines
from harness.cli.settings import hosts_of
from harness.errors import EnvironmentLacksError, Exit
from harness.host import leftovers as killed
from harness.host.leftovers import Leftover
from harness.plain_text import printable
from harness.plan.config import Consent
from harness.runtime import compose
from harness.runtime.choice import over_machines
from harness.units import format_bytes


def command(
    *,
    dry_run: Annotated[bool, Parameter(help="say what would be removed")] = False,
    leftovers: Annotated[bool, Parameter(help="only what runs that were killed have left; images stay")] = False,
    yes: Annotated[bool, Parameter(help="remove what killed runs have left without asking")] = False,
    machines: Machines = Machines(),  # noqa: B008 - frozen
) -> int:
    """Remove what killed runs have left (processes, scratch folders, containers, networks), and images of runs.

    Images without this project's label, the base image and the build cache stay. With --server-host and its like: what
    runs have left on those machines, whether they were lost in a run or not. Exit code 1 when something had to stay.
    """
    if (hosts := hosts_of(machines)).elsewhere:
        status: int = over_machines().clean(hosts, dry_run=dry_run)
        return status
    kept_left = _leftovers(dry_run=dry_run, consent="yes" if yes else "ask")
    if leftovers:
        return Exit.FAILED if kept_left else Exit.OK
    compose.engine()
    found = compose.images()
    for image in found:
        print(f"{format_bytes(image['Size']):>9}  {compose.image_name(image)}")
    if dry_run or not found:
        print(f"{len(found)} images; layers that they share are counted with each")
        return Exit.OK
    kept = compose.remove_images([name for image in found for name in image["RepoTags"] or [image["Id"]]])
    for name, reason in kept:
        print(f"stays: {name}: {reason}")
    print(f"removed {len(found) - len(kept)} of {len(found)} images")
    return Exit.FAILED if kept or kept_left else Exit.OK


def _leftovers(*, dry_run: bool, consent: Consent) -> bool:
    """Name what killed runs have left, and remove it with consent; whether something stays that should not."""
    everything = [*killed.on_this_machine(), *_of_containers()]
    found = [leftover for leftover in everything if leftover.certain]
    for leftover in everything:
        if leftover.certain:
            print(f"left by a killed run: {leftover}")
        else:  # another machine's, another container's, or an older version's: it may well be in use
            print(f"of a run that is not known here, and not touched: {leftover}")
    if dry_run or not found:
        return False
    if not agreed(consent, f"Remove {len(found)} thing(s) that killed runs have left?"):
        print("they stay: ./tfb clean --yes removes them")
        return True
    kept = killed.remove(found)
    for what in kept:
        print(f"stays: {printable(what)}")
    print(f"removed {len(found) - len(kept)} of {len(found)} things that killed runs had left")
    return bool(kept)


def _of_containers() -> tuple[Leftover, ...]:
    try:
        compose.engine()
    except EnvironmentLacksError:
        return ()
    return compose.leftovers()
