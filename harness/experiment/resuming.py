"""What has to be as it was for a run to go on: otherwise one run would hold the figures of two questions."""

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from harness.errors import StoreError, UsageError
from harness.experiment.preparation import Selected
from harness.plan.config import Settings
from harness.records.models import RunInfo, RunRecords

Revision = tuple[str | None, bool | None]


def require_same(info: RunInfo, settings: Settings, selected: Selected, revision: Revision) -> None:
    """Raise UsageError that names what changed since the run began: commit, profile, or an implementation's entry."""
    changed = [*_revision(info, revision), *_profile(info, settings), *_implementations(info, selected)]
    if changed:
        raise UsageError(
            f"run {info.run_id} cannot go on, it would mix two different things: {'; '.join(changed)}. Bring that back "
            "as it was, or start a new run"
        )


def _revision(info: RunInfo, revision: Revision) -> Iterator[str]:
    now, _ = revision
    if info.revision and now and info.revision != now:
        yield f"it was begun at commit {info.revision[:12]}, and this is {now[:12]}"


def _profile(info: RunInfo, settings: Settings) -> Iterator[str]:
    before = info.settings.get("profile")
    if isinstance(before, dict):
        for key, (old, new) in sorted(_differences(before, settings.profile.model_dump(mode="json")).items()):
            yield f"profile {info.profile}: {key} was {old!r:.60}, and is {new!r:.60}"


def _differences(before: object, now: object, key: str = "") -> dict[str, tuple[object, object]]:
    """Keys of two documents that differ; one that only one of them has came with a later version, and is no change."""
    if isinstance(before, dict) and isinstance(now, dict):
        found: dict[str, tuple[object, object]] = {}
        for name in before.keys() & now.keys():
            found |= _differences(before[name], now[name], f"{key}.{name}".lstrip("."))
        return found
    return {} if before == now else {key: (before, now)}


def _implementations(info: RunInfo, selected: Selected) -> Iterator[str]:
    now = {implementation.name: implementation.digest for implementation in selected.implementations}
    for known in info.implementations:
        if known.name not in now:
            yield f"{known.name} is no longer there"
        elif known.digest and known.digest != now[known.name]:
            yield f"benchmark_config.json says something else of {known.name}"
    if added := now.keys() - {known.name for known in info.implementations}:
        yield f"{', '.join(sorted(added))} came later"


def require_same_builds(before: RunInfo, info: RunInfo) -> None:
    """Raise UsageError that names what programs and images have become since the run began: tools, images.

    What only one of the two knows came with a later version, or was not built then, and is no change.
    """
    changed = list(_changes("", before.tools, info.tools))
    builds = {known.name: known.build for known in before.implementations}
    for known in info.implementations:
        if (old := builds.get(known.name)) and (new := known.build) and old.status == new.status == "ok":
            changed += _changes(f"{known.name}: ", old.tools, new.tools)
            if old.image_digest and new.image_digest and old.image_digest != new.image_digest:
                changed.append(f"{known.name}: its image was {old.image_digest[:19]}, and is {new.image_digest[:19]}")
    if changed:
        raise UsageError(
            f"run {before.run_id} cannot go on, it would mix two different things: {'; '.join(changed)}. Bring that "
            "back as it was, or start a new run"
        )


def _changes(of: str, before: Mapping[str, str], now: Mapping[str, str]) -> Iterator[str]:
    for name in sorted(before.keys() & now.keys()):
        if before[name] and now[name] and before[name] != now[name]:
            yield f"{of}{name} was {before[name]:.30}, and is {now[name]:.30}"


def require_undamaged(folder: Path, records: RunRecords, done: Collection[tuple[str, int]]) -> None:
    """Raise StoreError for a complete run that has lost records: it is not what it was."""
    ended = {(r.implementation, r.process) for r in records.processes if r.status == "ok"}
    if lost := ended - set(done):
        name, process = min(lost)
        raise StoreError(
            f"{folder / 'trials.jsonl'}: lacks trials of {len(lost)} finished process(es), the first of them "
            f"{name} process {process + 1}: the run was complete and is damaged; start a new one"
        )
