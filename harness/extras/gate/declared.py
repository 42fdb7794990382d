"""Compares the tfb.toml files of base and head. Base's file controls the measurement, so head cannot choose its test.

Requests that only head declares are verified on head, but not measured. Other differences are reported.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from harness.errors import UsageError
from harness.extras.gate.judge import GateResult, RequestVerdict
from harness.extras.gate.paired import HEAD
from harness.extras.gate.session_evidence import describe_violation
from harness.extras.gate.sides import TARGET_PREFIXES
from harness.plan import service
from harness.plan.requests import Request
from harness.records.outcome import Outcome
from harness.records.run_records import RunRecords
from harness.records.verdicts import Verdict, worst

BASE_DECIDES = ("connections", "language", "name")  # keys of [service] for which base's file applies to both sides
STARTING = frozenset({"build", "postgres", "service", *TARGET_PREFIXES.values(), "dockerfile", "compose"})
VALUE_SHOWN = 80  # maximum number of characters of a changed value in a note


@dataclass(frozen=True, kw_only=True)
class DeclaredRequests:
    """The comparison of base's and head's declarations."""

    base: service.ServiceFile
    head: service.ServiceFile  # head's file, with base's values for ``BASE_DECIDES``
    added: tuple[Request, ...]  # requests declared only by head
    removed: frozenset[str]  # names of requests declared only by base
    notes: tuple[str, ...]


def compare_declarations(
    base: service.ServiceFile, head: service.ServiceFile, *, targets: Sequence[str | None]
) -> DeclaredRequests:
    """Compare the two files; ``targets`` are ``--base`` and ``--head`` of the command line.

    Raises UsageError if head's file names a command or the URL of a running service, and base's file does not.
    """
    asked = any(target and target.startswith(tuple(TARGET_PREFIXES)) for target in targets)
    if head.service.url and not base.service.url and not asked:
        raise UsageError(
            f"head's {service.FILE} sets url = {head.service.url!r}, but base's does not: the service at this URL may "
            "not be head. Name the URL on the command line (--head http://HOST:PORT)"
        )
    if head.service.start and not (base.service.start or base.service.url) and not asked:
        raise UsageError(
            f"head's {service.FILE} starts a command on this machine ({_shown(head.service.start)}), and base's a "
            "container, in which head could do no harm. If you trust head, name the command on the command line "
            "(--head cmd:COMMAND), or change base first"
        )
    known = {request.name: request for request in base.request}
    own = {request.name: request for request in head.request}
    added = tuple(request for request in head.request if request.name not in known)
    removed = frozenset(known.keys() - own.keys())
    changed = [name for name in known if name in own and own[name] != known[name]]
    notes = [*_service_notes(base.service, head.service, asked=asked)]
    if changed:
        notes.append(f"head's {service.FILE} declares {', '.join(changed)} differently: measured as base's declares it")
    if removed:
        gone = ", ".join(name for name in known if name in removed)
        notes.append(f"head's {service.FILE} no longer declares {gone}: measured as base's declares it, and left open")
    if added:
        notes.append(f"not in base: {', '.join(request.name for request in added)}: verified on head, not measured")
    counted = {key: getattr(base.service, key) for key in BASE_DECIDES}
    started = head.service.model_copy(update=counted)
    return DeclaredRequests(
        base=base,
        head=head.model_copy(update={"service": started}),
        added=added,
        removed=removed,
        notes=tuple(notes),
    )


def _service_notes(base: service.Service, head: service.Service, *, asked: bool) -> Iterator[str]:
    """Yield a note for each key of [service] that head changes. Notes never contain values of variables."""
    for key in service.Service.model_fields:
        old, new = getattr(base, key), getattr(head, key)
        if old == new or (asked and key in STARTING):
            continue
        if key == "env":
            names = sorted(name for name in old.keys() | new.keys() if old.get(name) != new.get(name))
            yield f"head's {service.FILE} changes service.env: {', '.join(names)}"
            continue
        counts = ": base's counts for both" if key in BASE_DECIDES else ""
        yield f"head's {service.FILE} changes service.{key} from {_shown(old)} to {_shown(new)}{counts}"


def _shown(value: object) -> str:
    if value is None or value == () or value == "":
        return "nothing"
    text = value if isinstance(value, str) else repr(list(value)) if isinstance(value, tuple) else str(value)
    return repr(text if len(text) <= VALUE_SHOWN else f"{text[:VALUE_SHOWN]}…")


def without_added_requests(records: RunRecords, asked: DeclaredRequests) -> RunRecords:
    """Return the records without the requests that only head declares."""
    own = {request.name for request in asked.base.request}
    loads = {name: loads for name, loads in records.info.loads.items() if name in own}
    return RunRecords(
        info=records.info.model_copy(update={"loads": loads}),
        trials=[trial for trial in records.trials if trial.test_type in own],
        processes=records.processes,
        verdicts=[verdict for verdict in records.verdicts if verdict.test_type in (*own, "http")],
        problems=records.problems,
    )


def apply_declarations(result: GateResult, records: RunRecords, asked: DeclaredRequests) -> GateResult:
    """Return the result, including head's additional requests. A removed request gets no good verdict."""
    found = tuple(_left_open(one) if one.request in asked.removed else one for one in result.requests)
    found += tuple(_verified(records, request.name) for request in asked.added)
    return result.model_copy(update={"requests": found, "verdict": worst(one.verdict for one in found)})


def _left_open(one: RequestVerdict) -> RequestVerdict:
    """Return the verdict on a removed request: "slower" or "cannot tell"."""
    if one.verdict == "slower":
        return one
    said = f"head's {service.FILE} no longer declares it"
    if one.verdict != "cannot tell":
        said += f" (it would be {one.verdict})"
    reason = f"{said}: {one.reason}" if one.reason else said
    return one.model_copy(update={"verdict": "cannot tell", "reason": reason, "minutes_more": None})


def _verified(records: RunRecords, name: str) -> RequestVerdict:
    """Return the verdict of verification on a request that only head declares."""
    for verdict in records.verdicts:
        if (verdict.implementation, verdict.test_type) == (HEAD, name) and verdict.outcome is Outcome.FAIL:
            return RequestVerdict(request=name, verdict="failed", reason=describe_violation(verdict))
    seen = any((each.implementation, each.test_type) == (HEAD, name) for each in records.verdicts)
    said: Verdict = "not in base" if seen else "cannot tell"
    return RequestVerdict(request=name, verdict=said, reason="" if seen else "not in base, and never verified on head")
