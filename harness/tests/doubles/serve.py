"""``python -m harness.tests.doubles.serve NAME``: one server of the galleries as a program.

A run measures it like any implementation: PORT, the database and the upstream come from the environment.
"""

import os
import sys
import threading
from collections.abc import Sequence

from harness.runtime import DatabaseAddress
from harness.tests.doubles.honest import HONEST
from harness.tests.doubles.honest_orders import HONEST_ORDERS
from harness.tests.doubles.reference import ReferenceServer
from harness.tests.doubles.rogues.gallery import EVERYONE, WITHOUT_DATABASE

VARIANTS = {f"honest-{variant.name}": variant for variant in (*HONEST, *HONEST_ORDERS)}


def server(name: str, database: DatabaseAddress, upstream: str | None) -> ReferenceServer:
    """The server of that name, listening."""
    if name in EVERYONE:
        rogue = EVERYONE[name]
        return rogue.server(None if rogue.test_type in WITHOUT_DATABASE else database, upstream)
    honest = VARIANTS[name]
    return honest.server(None if WITHOUT_DATABASE.issuperset(honest.test_types) else database)


def main(argv: Sequence[str]) -> int:
    """Serve until it is ended."""
    environment = os.environ
    database = DatabaseAddress(
        host=environment["DBHOST"],
        port=int(environment["DBPORT"]),
        name=environment["DBNAME"],
        user=environment["DBUSER"],
        password=environment["DBPASS"],
    )
    ReferenceServer.listens_at = int(environment["PORT"])
    with server(argv[0], database, environment.get("UPSTREAM_URL")) as running:
        while not running.stopped:  # a rogue may end itself
            threading.Event().wait(0.1)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
