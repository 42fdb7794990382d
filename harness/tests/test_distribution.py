"""What one process finds out is not found out by another as well."""

from harness.paths import REPOSITORY
from harness.tests.distribution import DATABASE_GROUP, OF_A_DATABASE, OF_ONE_RUN, group

ROGUES = "harness/tests/verify/checks/test_rogues.py::test_the_rogue_is_caught"


def test_a_group_is_what_stands_behind_the_at_sign_of_an_id_or_shares_a_database_or_a_run() -> None:
    assert group(f"{ROGUES}[a@without a database]") == group(f"{ROGUES}[b@without a database]")
    assert group(f"{ROGUES}[a@without a database]") != group(f"{ROGUES}[c@status-ok]")
    of_a_database = {group(f"{path}test_copies.py::test_a") for path in OF_A_DATABASE}
    assert of_a_database == {group(f"{ROGUES}[a@{DATABASE_GROUP}]")}
    assert group("harness/tests/test_units.py::test_a[x@y z]") != group("harness/tests/test_units.py::test_a[x]")
    assert group("harness/tests/test_units.py::test_a") != group("harness/tests/test_units.py::test_b")
    assert len({group(f"{path}::test_{name}") for path in OF_ONE_RUN for name in "ab"}) == len(OF_ONE_RUN)


def test_the_files_of_the_groups_exist() -> None:
    assert [path for path in OF_A_DATABASE + OF_ONE_RUN if not (REPOSITORY / path).exists()] == []
