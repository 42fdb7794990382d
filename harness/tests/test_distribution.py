"""What one process finds out is not found out by another as well."""

from harness.paths import REPOSITORY
from harness.tests.distribution import DATABASE_GROUP, GROUPS, group

UNITS = "harness/tests/test_units.py::test_a"


def test_a_group_is_what_stands_behind_the_at_sign_of_an_id_or_shares_what_is_made_once() -> None:
    assert [group(f"{UNITS}[{one}]") for one in ("a@x y", "b@x y", "b@z")] == ["x y", "x y", "z"]
    assert group("harness/tests/runtime/database/test_copies.py::test_a") == DATABASE_GROUP
    assert group(UNITS) == UNITS


def test_the_files_of_the_groups_exist() -> None:
    paths = [place.partition("::")[0] for places in GROUPS.values() for place in places]
    assert [path for path in paths if not (REPOSITORY / path).exists()] == []
