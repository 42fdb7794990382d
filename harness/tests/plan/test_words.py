"""Words of messages."""

from harness.plan.words import suggest


def test_the_nearest_known_word_is_asked_for_and_else_all_are_named() -> None:
    assert suggest("expres", ["express", "axum"]) == "did you mean express?"
    assert suggest("zzz", ["express", "axum"]) == "allowed are axum, express"


def test_a_long_list_is_cut_and_says_where_all_are() -> None:
    names = [f"name-{number:02}" for number in range(50)]
    assert suggest("zzz", names).startswith("allowed are name-00, name-01, ")
    assert suggest("zzz", names).endswith("name-19 and 30 more")
