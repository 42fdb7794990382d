"""Tests for profiles in config/profiles and for custom profiles."""

from pathlib import Path

import pytest

from harness.errors import ConfigError
from harness.plan import profile

OWN = """
description = "mine"
duration_seconds = 3
[levels]
concurrency = [8]
pipeline_concurrency = [8]
query = [1]
cached_query = [1]
query_concurrency = 8
"""


@pytest.mark.needs_extra("gate")
def test_all_shipped_profiles_are_valid() -> None:
    assert profile.profile_names() == ("claims", "gate", "latency", "quick", "smoke", "standard", "techempower")
    assert [profile.load_profile(name).name for name in profile.profile_names()] == list(profile.profile_names())


def test_techempower_profile_has_techempower_loads_and_durations() -> None:
    known = profile.load_profile("techempower")
    levels = known.levels
    assert (levels.concurrency, levels.query) == ((16, 32, 64, 128, 256, 512), (1, 5, 10, 15, 20))
    assert levels.pipeline_concurrency == (256, 1024, 4096, 16384)
    assert (levels.cached_query, known.duration_seconds) == ((1, 10, 20, 50, 100), 15)


def test_custom_profile_is_named_after_its_file(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(OWN)
    known = profile.load_profile(str(tmp_path / "mine.toml"))
    assert (known.name, known.duration_seconds, known.levels.query) == ("mine", 3, (1,))


def test_unknown_profile_lists_available_profiles() -> None:
    with pytest.raises(ConfigError, match="no profile 'smok': use claims, gate, latency, quick, smoke, "):
        profile.load_profile("smok")


def test_nul_character_in_a_profile_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(OWN.replace('"mine"', '"mi\\u0000ne"'))
    with pytest.raises(ConfigError, match="contains a NUL character"):
        profile.load_profile(str(path))
