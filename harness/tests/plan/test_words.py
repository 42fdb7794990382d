"""Words of messages."""

from harness.plan.words import suggest


def test_a_long_list_is_cut_and_says_where_all_are() -> None:
    names = [f"name-{number:02}" for number in range(50)]
    assert suggest("zzz", names).startswith("allowed are name-00, name-01, ")
    assert suggest("zzz", names).endswith("name-19 and 30 more")
