"""Compares the tfb.toml files of base and head. Only base's file determines what tfb measures.

Requests that only head declares are verified, but not measured. If base and head declare a request differently, head's
responses are verified against both declarations. The report lists all other differences.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from harness.errors import UsageError
from harness.extras.gate.judge import GateResult, RequestVerdict
from harness.extras.gate.paired import BASE, COPY, HEAD
from harness.extras.gate.session_evidence import describe_violation
from harness.extras.gate.sides import TARGET_PREFIXES
from harness.plan import service
from harness.plan.requests import Request
from harness.records.run_records import RunRecords
from harness.records.verdicts import worst
from harness.records.verification_record import WHOLE_SERVER, Outcome, VerificationRecord

# Keys of [service] for which base's file applies to both sides.
BASE_DECIDES = ("cache", "connections", "headers", "language", "name")
STARTING = frozenset({"build", "postgres", "service", *TARGET_PREFIXES.values(), "dockerfile", "compose"})
VALUE_SHOWN = 80  # maximum length of a changed value in a note, in characters
# Suffix for the names of requests that head declares differently from base. Declared names contain no "~".
OWN = "~head"
UNVERIFIED_KEYS = {
    "weight",
    "threshold",
    "budget_p99",
    "budget_cpu",
}  # keys of a request that do not affect verification
NO_SUCH_REQUEST = ("404", "405", "501")  # statuses that servers return for an unknown path or method


@dataclass(frozen=True, kw_only=True)
class DeclaredRequests:
    """The requests that base and head declare, and the differences between the declarations."""

    base: service.ServiceFile
    head: service.ServiceFile  # head's file, with base's values for ``BASE_DECIDES``
    added: tuple[Request, ...]  # requests declared only by head
    removed: frozenset[str]  # names of requests declared only by base
    changed: tuple[Request, ...]  # head's declarations of shared requests that differ in keys that affect verification
    borrowed: bool  # whether base's file comes from head or the working tree, and may declare requests that base lacks
    notes: tuple[str, ...]

    @property
    def verified_on_head(self) -> tuple[Request, ...]:
        """Return the requests that tfb verifies on head, but does not measure."""
        return (*self.added, *(each.model_copy(update={"name": f"{each.name}{OWN}"}) for each in self.changed))


def compare_declarations(
    base: service.ServiceFile, head: service.ServiceFile, *, targets: Sequence[str | None], borrowed: bool = False
) -> DeclaredRequests:
    """Compare the two files. ``targets`` are the values of ``--base`` and ``--head``.

    ``borrowed`` means that base's file comes from head or the working tree.

    Raises UsageError if only head's file names a URL. Also raises UsageError if head's file names a command, but base's
    names neither a command nor a URL. If a target is a command, an image or a URL, these checks are omitted.
    """
    target_given = any(target and target.startswith(tuple(TARGET_PREFIXES)) for target in targets)
    if head.service.url and not base.service.url and not target_given:
        raise UsageError(
            f"head's {service.FILE} sets url = {head.service.url!r}, but base's does not: the service at this URL may "
            "not be head's version. Pass the URL on the command line (--head http://HOST:PORT)"
        )
    if head.service.start and not (base.service.start or base.service.url) and not target_given:
        raise UsageError(
            f"head's {service.FILE} runs a command on this machine ({_shown(head.service.start)}), but base's file "
            "runs a container, which isolates the service. If you trust head, pass --head cmd:COMMAND, or first make "
            f"the same change to base's {service.FILE}"
        )
    base_requests = {request.name: request for request in base.request}
    head_requests = {request.name: request for request in head.request}
    added = tuple(request for request in head.request if request.name not in base_requests)
    removed = frozenset(base_requests.keys() - head_requests.keys())
    changed = [name for name in base_requests if name in head_requests and head_requests[name] != base_requests[name]]
    notes = [*_service_notes(base.service, head.service, asked=target_given)]
    if changed:
        notes.append(f"head's {service.FILE} declares {', '.join(changed)} differently: base's declaration applies")
    if removed:
        gone = ", ".join(name for name in base_requests if name in removed)
        notes.append(f"head's {service.FILE} no longer declares {gone}: the verdict is 'slower' or 'cannot tell'")
    if added:
        notes.append(f"not in base: {', '.join(request.name for request in added)}: verified on head, not measured")
    counted = {key: getattr(base.service, key) for key in BASE_DECIDES}
    counted["login"] = base.service.login or head.service.login
    started = head.service.model_copy(update=counted)
    return DeclaredRequests(
        base=base,
        head=head.model_copy(update={"service": started}),
        added=added,
        removed=removed,
        changed=tuple(
            head_requests[name] for name in changed if _contract(head_requests[name]) != _contract(base_requests[name])
        ),
        borrowed=borrowed,
        notes=tuple(notes),
    )


def _contract(request: Request) -> dict[str, object]:
    """Return the parts of a request's declaration that affect verification."""
    return request.model_dump(exclude=UNVERIFIED_KEYS)


def _service_notes(base: service.Service, head: service.Service, *, asked: bool) -> Iterator[str]:
    """Yield a note for each key of [service] that head changes. Omit values of variables, which may be secret."""
    for key in service.Service.model_fields:
        old, new = getattr(base, key), getattr(head, key)
        if old == new or (asked and key in STARTING):
            continue
        if key == "login":  # may contain a password
            yield f"head's {service.FILE} changes service.login: head uses {'base' if old else 'head'}'s login"
            continue
        counts = ": base's value applies to both" if key in BASE_DECIDES else ""
        if key in ("env", "build_env", "headers"):
            names = sorted(name for name in old.keys() | new.keys() if old.get(name) != new.get(name))
            yield f"head's {service.FILE} changes service.{key}: {', '.join(names)}{counts}"
            continue
        yield f"head's {service.FILE} changes service.{key} from {_shown(old)} to {_shown(new)}{counts}"


def _shown(value: object) -> str:
    if value is None or value == () or value == "":
        return "nothing"
    text = value if isinstance(value, str) else repr(list(value)) if isinstance(value, tuple) else str(value)
    return repr(text if len(text) <= VALUE_SHOWN else f"{text[:VALUE_SHOWN]}…")


def without_added_requests(records: RunRecords, declared: DeclaredRequests) -> RunRecords:
    """Return the records without the requests that base does not support."""
    shared_requests = {request.name for request in declared.base.request} - _requests_missing_in_base(records, declared)
    loads = {name: loads for name, loads in records.info.loads.items() if name in shared_requests}
    return RunRecords(
        info=records.info.model_copy(update={"loads": loads}),
        trials=[trial for trial in records.trials if trial.test_type in shared_requests],
        processes=records.processes,
        verdicts=[verdict for verdict in records.verdicts if verdict.test_type in (*shared_requests, WHOLE_SERVER)],
        problems=records.problems,
    )


def apply_declarations(result: GateResult, records: RunRecords, declared: DeclaredRequests) -> GateResult:
    """Adjust the verdicts for differences between the declarations.

    Add a verdict on each request that only head declares or supports. If head's responses match head's changed
    declaration, the verdict is "cannot tell" instead of "failed". If head no longer declares a request, the verdict is
    "slower" or "cannot tell".
    """
    verdicts = tuple(_left_open(one) if one.request in declared.removed else one for one in result.requests)
    verdicts = tuple(_excused(one, records) for one in verdicts)
    missing = _requests_missing_in_base(records, declared)
    added = (*declared.added, *(request for request in declared.base.request if request.name in missing))
    verdicts += tuple(_verified(records, request.name) for request in added)
    return result.model_copy(update={"requests": verdicts, "verdict": worst(one.verdict for one in verdicts)})


def _left_open(verdict: RequestVerdict) -> RequestVerdict:
    """Return the verdict on a request that head no longer declares: "slower" or "cannot tell"."""
    if verdict.verdict == "slower":
        return verdict
    said = f"head's {service.FILE} no longer declares the request"
    if verdict.verdict != "cannot tell":
        said += f' (otherwise the verdict would be "{verdict.verdict}")'
    reason = f"{said}: {verdict.reason}" if verdict.reason else said
    return verdict.model_copy(update={"verdict": "cannot tell", "reason": reason, "minutes_more": None})


def _excused(verdict: RequestVerdict, records: RunRecords) -> RequestVerdict:
    """Change "failed" to "cannot tell" if head's responses match head's own declaration, but not base's."""
    violations = _violations(records, HEAD, f"{verdict.request}{OWN}")
    if (
        verdict.verdict != "failed"
        or not _violations(records, HEAD, verdict.request)
        or violations is None
        or violations
    ):
        return verdict
    reason = (
        f"head's responses match head's {service.FILE}, but not base's, so head cannot be compared with base: "
        f"{verdict.reason}"
    )
    return verdict.model_copy(update={"verdict": "cannot tell", "reason": reason})


def _requests_missing_in_base(records: RunRecords, declared: DeclaredRequests) -> set[str]:
    """Return the requests that base and the control copy reject as unknown, but that head handles correctly.

    The result is empty unless base's declarations come from head or the working tree.
    """
    names = [request.name for request in declared.base.request] if declared.borrowed else []
    return {
        name
        for name in names
        if _violations(records, HEAD, name) == []
        and all(_is_unknown(_violations(records, side, name) or ()) for side in (BASE, COPY))
    }


def _is_unknown(violations: Sequence[VerificationRecord]) -> bool:
    """Return whether a side rejected a request because the path or method is unknown."""
    results = [result for verdict in violations for result in verdict.results if result.outcome is Outcome.FAIL]
    return bool(results) and all((result.actual or "").startswith(NO_SUCH_REQUEST) for result in results)


def _violations(records: RunRecords, side: str, name: str) -> list[VerificationRecord] | None:
    """Return a request's failed verifications on a side, or None if the request was never verified on this side."""
    every = [each for each in records.verdicts if (each.implementation, each.test_type) == (side, name)]
    return [verdict for verdict in every if verdict.outcome is Outcome.FAIL] if every else None


def _verified(records: RunRecords, name: str) -> RequestVerdict:
    """Return the verdict on a request that base does not support, using only the verification of head's responses."""
    violations = _violations(records, HEAD, name)
    if violations:
        return RequestVerdict(request=name, verdict="failed", reason=describe_violation(violations[0]))
    if violations is None:
        return RequestVerdict(request=name, verdict="cannot tell", reason="not in base, and never verified on head")
    return RequestVerdict(request=name, verdict="not in base")
