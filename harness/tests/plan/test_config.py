"""Tests for CPU lists in flags."""

import pytest

from harness.plan.run_settings import parse_cpus

USABLE = (0, 1, 2, 3, 8)


@pytest.mark.parametrize(
    ("text", "cpus"), [("0-3", (0, 1, 2, 3)), ("8,0", (0, 8)), ("1,1-2", (1, 2)), (None, None), ("", None)]
)
def test_cpu_list_is_sorted_without_duplicates(text: str | None, cpus: tuple[int, ...] | None) -> None:
    assert parse_cpus(text, USABLE) == cpus
