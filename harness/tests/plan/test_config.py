"""CPU lists of the flags."""

import pytest

from harness.plan.run_settings import parse_cpus

USABLE = (0, 1, 2, 3, 8)


@pytest.mark.parametrize(
    ("text", "cpus"), [("0-3", (0, 1, 2, 3)), ("8,0", (0, 8)), ("1,1-2", (1, 2)), (None, None), ("", None)]
)
def test_a_list_of_cpus_is_sorted_and_without_repeats(text: str | None, cpus: tuple[int, ...] | None) -> None:
    assert parse_cpus(text, USABLE) == cpus
