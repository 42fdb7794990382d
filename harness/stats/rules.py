"""The rules that a run was made by, read back from the settings that run.json keeps."""

from typing import TypeVar

from pydantic import ValidationError

from harness.plan.profile import GateThresholds, Replication, Section
from harness.records.models import RunInfo

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


def alpha_at(rule: Replication, replicates: int) -> float:
    """Family-wise error that the look at this many replicates may spend: its own share, so that all shares add up.

    By a share of the whole that grows with the square of the replicates (Kim & DeMets 1987, rho = 2): early looks find
    what is clear, and most of the error is left for the last one, where what is close is decided. Shares that add up
    hold for any stopping rule and any dependence between looks. A count between two looks (an interrupted run) is the
    next look, taken early.
    """
    counts = looks(rule)
    index = next((i for i, look in enumerate(counts) if look >= replicates), len(counts) - 1)
    spent_before = (counts[index - 1] / counts[-1]) ** 2 if index else 0.0
    return (1 - rule.confidence) * ((counts[index] / counts[-1]) ** 2 - spent_before)
