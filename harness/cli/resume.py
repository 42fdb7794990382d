"""Determines the settings of a resumed run.

The recorded command, seed and name apply. Only output flags, --dry-run and consent to changes of the machine come from
the command that resumes the run.
"""

import shlex
from dataclasses import fields, replace
from pathlib import Path

from harness.cli.consent import ask_confirmation
from harness.cli.settings import resolve_settings
from harness.cli.verbs import Invocation, is_run, parse_recorded
from harness.errors import StoreError, UsageError
from harness.experiment import origin
from harness.paths import PROGRAM
from harness.plain_text import printable
from harness.plan.run_settings import Settings
from harness.records import store
from harness.records.reader import RunReader
from harness.records.run_folders import find_run, list_runs
from harness.records.run_info import RunInfo

# Flags that may be combined with --resume.
RESUME_FLAGS = frozenset(
    {"resume", "accept_command", "results", "quiet", "json", "yes", "no_install", "dry_run", "mode", "test"}
)
MAX_COMMAND_LENGTH = 4000  # in characters; longer recorded commands are rejected, because users cannot review them


def resume_settings(settings: Settings, invocation: Invocation) -> Settings:
    """Return the settings of the run to resume. Raises UsageError if the run cannot be resumed."""
    folder = find_run(settings.results, settings.resume) if settings.resume else find_interrupted(settings.results)
    info = store.read_info(folder)
    is_own = origin.is_own(folder, info)
    if not is_own:
        _require_accepted(info, accepted=getattr(invocation.flags, "accept_command", False))
    resumed = recorded_settings(replace(settings, resume=str(folder)), invocation, info)
    if is_own:
        origin.require_same_places(folder, info, resumed)
    return resumed


def find_interrupted(results: Path) -> Path:
    """Return the folder of the newest run that was interrupted or killed, lost a machine, or filled the disk.

    Raises UsageError if there is no such run.
    """
    for folder in reversed(list_runs(results)):
        try:
            info = RunReader(folder).info
        except StoreError:  # the run is unreadable, so try the next run
            continue
        ended = info.status == "interrupted" or (info.status == "running" and not store.is_locked(folder))
        if ended and is_run(info.command):
            return folder
    raise UsageError(
        f"--resume: no run in {results} was interrupted. To resume a failed run, give its id: --resume RUN"
    )


def _require_accepted(info: RunInfo, *, accepted: bool) -> None:
    """Raise UsageError unless the user accepts a command that a different user or machine recorded."""
    if accepted:
        return
    command = shlex.join((PROGRAM, *info.command)).encode("ascii", "backslashreplace").decode("ascii")
    text = printable(command.replace("\n", "\\n").replace("\t", "\\t"))
    introduction = (
        f"run {info.run_id} was not started by this user on this machine. Resuming it executes the recorded command:"
    )
    if len(text) > MAX_COMMAND_LENGTH:
        raise UsageError(
            f"{introduction}\n  {text[:MAX_COMMAND_LENGTH]} ...\nThe command is too long to review: start a new run"
        )
    confirmed = ask_confirmation(f"{introduction}\n  {text}\nExecute it?")
    if not confirmed:
        reason = "" if confirmed is None else ", because you did not confirm"
        raise UsageError(
            f"{introduction}\n  {text}\nNothing was executed{reason}. Read the command, then add --accept-command to "
            "execute it, or start a new run"
        )


def recorded_settings(current: Settings, invocation: Invocation, info: RunInfo) -> Settings:
    """Combine the recorded command's settings with the output flags and consent of the command that resumes the run."""
    try:
        recorded = parse_recorded(info.command)
    except UsageError as error:
        raise UsageError(f"run {info.run_id} {error}") from error
    _require_same_flags(invocation, recorded)
    return replace(
        resolve_settings(recorded),
        seed=info.seed,
        results_name=info.name,
        resume=current.resume,
        results=current.results,
        quiet=current.quiet,
        json=current.json,
        dry_run=current.dry_run,
        consent=current.consent,
    )


def _require_same_flags(invocation: Invocation, recorded: Invocation) -> None:
    """Raise UsageError if a flag given with ``--resume`` contradicts the recorded command."""
    defaults = type(invocation.flags)()
    changed = set()
    for name in {field.name for field in fields(defaults)} - RESUME_FLAGS:
        if getattr(invocation.flags, name) not in (getattr(defaults, name), getattr(recorded.flags, name, None)):
            changed.add(name)
    if invocation.test not in ((), recorded.test):
        changed.add("test")
    if changed:
        raise UsageError(
            f"--{min(changed).replace('_', '-')} contradicts --resume, which continues the run with its recorded "
            "flags: remove the flag, or start a new run"
        )
