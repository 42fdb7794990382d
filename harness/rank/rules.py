"""The rules that a run was made by, read back from the settings that run.json keeps."""

from typing import TypeVar

from pydantic import ValidationError

from harness.model import RunInfo
from harness.profile import GateThresholds, Replication, Section

AnySection = TypeVar("AnySection", bound=Section)


def replication(run: RunInfo) -> Replication:
    """How often the run was to be repeated and looked at; without a record of it, one look at all of its blocks."""
    return _section(run, "replication", Replication) or Replication(
        minimum=min(run.blocks_expected, run.blocks_maximum), maximum=run.blocks_maximum
    )


def gates(run: RunInfo) -> GateThresholds:
    """The run's gate thresholds, or today's defaults."""
    return _section(run, "gates", GateThresholds) or GateThresholds()


def _section(run: RunInfo, name: str, kind: type[AnySection]) -> AnySection | None:
    """``settings[name]``, or ``settings["profile"][name]``; None when absent or from a version with other keys."""
    profile = run.settings.get("profile")
    for place in (run.settings, profile):
        if isinstance(place, dict) and name in place:
            try:
                return kind.model_validate(place[name])
            except ValidationError:
                return None
    return None


def looks(rule: Replication) -> tuple[int, ...]:
    """Replicate counts at which the data is looked at; the last is the maximum, where the run ends in any case."""
    early = {look for look in rule.looks if rule.minimum <= look < rule.maximum}
    return (*sorted(early), rule.maximum)


def alpha_per_look(rule: Replication) -> float:
    """Family-wise error of one look: an equal share of the whole, so that all looks together stay within it.

    The union bound holds for any stopping rule and any dependence between looks, and at the few replicates of a
    benchmark it costs little against boundaries that use the dependence (docs/method.md has the comparison).
    """
    return (1 - rule.confidence) / len(looks(rule))
