"""What is said of folders of another tree that were built and verified."""

import pytest

from harness.benchmarks.folders import LATE, Row, counts, table, why


@pytest.mark.parametrize(
    ("log", "reason"),
    [
        ("#9 1.2 fatal: unable to access 'x': Could not resolve host: a.example", "asks for a.example, which is"),
        ("#9 wget: unable to resolve host address ‘b.example’", "asks for b.example, which is"),  # noqa: RUF001 - wget's
        ("go: lookup c.example on 1.1.1.1:53: no such host", "asks for c.example, which is"),
        ("npm error getaddrinfo ENOTFOUND d.example", "asks for d.example, which is"),
        ("java.net.UnknownHostException: e.example", "asks for e.example, which is"),
        ("There was an error installing\nCould not reach host f.example. Check", "asks for f.example, which is"),
        ("! Finding X () on mirror http://g.example failed.", "asks for g.example, which is"),
        (
            "[ERROR] x:y:pom:1 (absent): Could not find artifact x:y:pom:1 in central (h.example) @ line 1",
            "asks for x:y:pom:1, which central does not give here",
        ),
        (
            "#9 1.9 [error] sbt.librarymanagement.ResolveException: Error downloading x:y_2.13:2.34.0\n"
            "#9 1.9 [error]   Not found\n#9 2.0 [error] Total time: 3 s",
            "asks for x:y_2.13:2.34.0, which Maven Central does not give here",
        ),
        ("E: Unable to locate package php9-fpm", "Debian has no package php9-fpm"),
        ("#8 3.1 error[E0425]: cannot find value\n#8 ERROR: process did not complete", "error[E0425]: cannot find"),
        (
            "#9 1 [\x1b[1;31mERROR\x1b[m] Failed to execute goal \x1b[32ma:b:1:c\x1b[m\n"
            "#9 1 [ERROR] [Help 1] x\nERROR: failed to solve",
            "Failed to execute goal a:b:1:c",
        ),
        ("nothing of the kind", "nothing of the kind"),
    ],
)
def test_a_failed_build_is_told_by_what_it_lacked(log: str, reason: str) -> None:
    assert why(log).startswith(reason)


def test_the_table_says_what_was_built_verified_and_why_not() -> None:
    built = Row(
        name="a",
        language="Go",
        seconds=12.4,
        verified={"http": "warn", "json": "pass", "update": "fail (update-stored)"},
        remarks=("keys-exact",),
    )
    died = Row(name="c", language="C", seconds=0.0, verified={"json": "pass"}, reason="died:\n  at x\nof a | b")
    assert table([built, Row(name="b", language="C", reason="asks for x.example"), died]).splitlines()[2:] == [
        "| a | Go | 12 s | http json; update fail (update-stored) | keys-exact |",
        "| b | C | no: asks for x.example |  |  |",
        r"| c | C | 0 s | json; died: at x of a \| b |  |",
    ]


def test_counts_tell_whole_from_partial_and_two_tests_of_a_folder_from_two_folders() -> None:
    rows = [
        Row(name="a", language="Go", folder="Go/a", seconds=1.0, verified={"http": "pass", "json": "warn"}),
        Row(name="a-b", language="Go", folder="Go/a", seconds=1.0, verified={"json": "pass", "db": "fail (keys)"}),
        Row(name="c", language="C", folder="C/c", seconds=1.0, verified={"http": "pass", "json": "fail (status-ok)"}),
        Row(name="d", language="D", folder="D/d", reason="asks for x.example"),
        Row(name="e", language="Perl", folder="Perl/e", seconds=1.0, verified={"json": "pass"}, reason="it died"),
    ]
    assert counts(rows) == (
        "5 tests of 4 languages: 4 built, 3 of 2 folders verify, 1 of them in all types; by language (2): Go 2, Perl 1"
    )
    assert counts([]).endswith("by language (0): none")


@pytest.mark.parametrize(
    ("row", "build_only", "known"),
    [
        (Row(name="a", language="Go"), False, False),
        (Row(name="a", language="Go", reason="asks for x.example"), False, True),
        (Row(name="a", language="Go", reason=f"{LATE} 9 s"), False, False),
        (Row(name="a", language="Go", reason=f"{LATE} 9 s"), True, False),
        (Row(name="a", language="Go", seconds=1.0), True, True),
        (Row(name="a", language="Go", seconds=1.0), False, False),
        (Row(name="a", language="Go", seconds=1.0, reason=f"verification {LATE} 9 s"), False, False),
        (Row(name="a", language="Go", seconds=1.0, verified={"json": "fail"}), False, True),
    ],
)
def test_what_did_not_end_in_time_is_tried_again_and_nothing_else(row: Row, build_only: bool, known: bool) -> None:
    assert row.is_known(build_only) is known
