"""What a run is called: by what it measured, where its name only repeats the time. Pure."""

import re

from harness.records.models import RunInfo

TIME = re.compile(r"[\d\s:._TZ-]+")  # a name of digits and separators alone says when, not what
MOST_NAMES = 3
TEST_NAMES = {
    "json": "JSON",
    "plaintext": "Plaintext",
    "db": "Single query",
    "query": "Multiple queries",
    "fortune": "Fortunes",
    "update": "Updates",
    "cached-query": "Cached queries",
    "hello": "Hello",
    "delay": "Delay",
    "fan-out": "Fan-out",
    "order": "Order service",
}


def name_of(test_type: str) -> str:
    """A test type's name for people."""
    return TEST_NAMES.get(test_type, test_type)


def title_of(info: RunInfo) -> str:
    """``es4x, express and vertx-web, 7 test types``, or the name that somebody gave it."""
    name = info.name.strip()
    if name and name != info.run_id and not TIME.fullmatch(name):
        return name
    names = [item.name for item in info.implementations]
    if not names:
        return name or info.run_id
    kinds = list(info.loads)
    who = (
        f"{len(names)} implementations"
        if len(names) > MOST_NAMES
        else names[0]
        if len(names) == 1
        else f"{', '.join(names[:-1])} and {names[-1]}"
    )
    what = ", ".join(kinds) if len(kinds) <= MOST_NAMES else f"{len(kinds)} test types"
    return f"{who}, {what}" if kinds else who


def machine_of(info: RunInfo) -> str:
    """Host, CPU model and count."""
    machine = info.machine
    return f"{machine.hostname}, {' '.join(machine.cpu_model.split())}, {machine.cpus_online} CPUs"
