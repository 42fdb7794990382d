"""All cases, in the order of docs/faults.md."""

from harness.faults.case import Case
from harness.faults.cases import configs, disks, engine, files, moments, outputs, readers, requests, runs, surroundings

CASES: tuple[Case, ...] = (
    *configs.CASES,
    *requests.CASES,
    *files.CASES,
    *readers.CASES,
    *outputs.CASES,
    *surroundings.CASES,
    *runs.CASES,
    *engine.CASES,
    *disks.CASES,
    *moments.CASES,
)
