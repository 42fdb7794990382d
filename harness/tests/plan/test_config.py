"""CPU lists of the flags."""

import pytest

from harness.errors import UsageError
from harness.plan.config import parse_cpus

USABLE = (0, 1, 2, 3, 8)


@pytest.mark.parametrize(
    ("text", "cpus"), [("0-3", (0, 1, 2, 3)), ("8,0", (0, 8)), ("1,1-2", (1, 2)), (None, None), ("", None)]
)
def test_a_list_of_cpus_is_sorted_and_without_repeats(text: str | None, cpus: tuple[int, ...] | None) -> None:
    assert parse_cpus(text, USABLE) == cpus


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0-9", "--cpuset-cpus: CPU 4 is not among those that may be used here (0,1,2,3,8)"),
        ("a", "--cpuset-cpus: 'a' is not a CPU list such as 0-3,8"),
        ("3-1", "--cpuset-cpus: '3-1' is not a CPU list"),
        ("1,,2", "--cpuset-cpus: '1,,2' is not a CPU list"),
        ("-1", "--cpuset-cpus: '-1' is not a CPU list"),
    ],
)
def test_a_cpu_that_may_not_be_used_is_an_error(text: str, message: str) -> None:
    with pytest.raises(UsageError) as error:
        parse_cpus(text, USABLE)
    assert str(error.value).startswith(message)
