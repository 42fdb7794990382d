"""Output and exit codes of ``./tfb compare`` and ``./tfb report`` for recorded runs."""

import json
import random
from pathlib import Path

import pytest

from harness import cli
from harness.cli.compare import BASE, COPY, split
from harness.errors import Exit
from harness.records.loads import ClosedLoop
from harness.records.run_records import RunRecords
from harness.tests.doubles.records import stored
from harness.tests.report import made

SPEEDS = {"fast": 2000.0, "slow": 1000.0}


def write(results: Path, run_id: str, seed: int, speeds: dict[str, float], noise: float = 0.002) -> None:
    """Store a run with six processes per implementation and three rounds. ``noise`` is a relative deviation."""
    draw = random.Random(seed)
    trials = [
        made.trial(name, process, speed * (1 + draw.gauss(0, noise)), round=number)
        for name, speed in speeds.items()
        for process in range(6)
        for number in range(3)
    ]
    stored(results / run_id, made.info(tuple(speeds), run_id=run_id, seed=seed), trials)


def compared(results: Path, *words: str) -> int:
    return cli.main(["compare", "20260101", "20260102", "--results", str(results), *words])


def test_a_slower_run_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, "20260101-a", 1, SPEEDS)
    write(tmp_path, "20260102-b", 2, {"fast": 2000.0, "slow": 500.0})
    assert compared(tmp_path) == 1
    first, *others = capsys.readouterr().out.splitlines()
    assert first == "20260102-b over 20260101-a, 2 cells: slower in 1, same within 5 % in 1"
    (row,) = [line.split() for line in others if line.split()[:1] == ["slower"]]
    assert row[1:4] == ["json", "c64", "slow"]
    assert row[4].startswith("2.0")  # the ratio of CPU time per request
    assert not [line for line in others if "fast" in line]


def test_an_unchanged_run_passes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, "20260101-a", 1, SPEEDS)
    write(tmp_path, "20260102-b", 2, SPEEDS)
    assert compared(tmp_path, "--all") == 0
    text = capsys.readouterr().out
    assert "2 cells: same within 5 % in 2" in text.splitlines()[0]
    assert text.count("same  ") >= 2


def test_a_published_round_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path / "rounds" / "7", "20260101-a", 1, SPEEDS)
    write(tmp_path, "20260102-b", 2, SPEEDS)
    assert cli.main(["compare", "round-7", "20260102-b", "--results", str(tmp_path)]) == 0
    text = capsys.readouterr().out
    assert text.startswith("20260102-b over Round 7, 2 cells: ")
    assert "20260101-a" not in text


def test_different_network_paths_are_compared_only_on_request(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, "20260101-a", 1, SPEEDS)
    write(tmp_path, "20260102-b", 2, SPEEDS)
    for run_id, network in (("20260101-a", "host"), ("20260102-b", "bridge")):
        path = tmp_path / run_id / "run.json"
        document = json.loads(path.read_text(encoding="utf-8"))
        document["settings"]["network"] = network
        path.write_text(json.dumps(document), encoding="utf-8")
    assert compared(tmp_path) == Exit.USAGE
    assert "(network path: A loopback, B Docker bridge)" in capsys.readouterr().err
    assert compared(tmp_path, "--across") == Exit.OK
    headline = " ".join(capsys.readouterr().out.split())
    assert "same within 5 % in 2 (across network path: A loopback, B Docker bridge)" in headline


def test_an_undecided_comparison_exits_with_cannot_tell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, "20260101-a", 1, SPEEDS, noise=0.3)
    write(tmp_path, "20260102-b", 2, SPEEDS, noise=0.3)
    assert compared(tmp_path) == Exit.CANNOT_TELL
    text = capsys.readouterr().out
    assert "cannot tell in 2" in text.splitlines()[0]
    assert '"Cannot tell" does not mean "same"' in text
    assert compared(tmp_path, "--json") == Exit.CANNOT_TELL
    assert json.loads(capsys.readouterr().out)["verdicts"] == {"cannot tell": 2}
    write(tmp_path, "20260103-c", 2, {"fast": 2000.0})
    assert cli.main(["compare", "20260101", "20260103", "--results", str(tmp_path)]) == Exit.CANNOT_TELL
    assert "Only 20260101-a measured 1 cell (slow; json)." in capsys.readouterr().out


def test_split_separates_implementations_from_their_copies() -> None:
    trials = [made.trial(name, process, 1000.0) for name in ("a", f"a{COPY}") for process in range(2)]
    copies, originals = split(RunRecords(info=made.info(("a", f"a{COPY}")), trials=trials), COPY)
    assert [trial.implementation for trial in (*copies.trials, *originals.trials)] == ["a"] * 4
    assert [trial.id for trial in copies.trials] == [trial.id for trial in trials[2:]]
    assert [[each.name for each in side.info.implementations] for side in (copies, originals)] == [["a"], ["a"]]
    assert (copies.info.run_id, originals.info.run_id) == ("20260101-000000~copy", "20260101-000000")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("", "exactly one of these: two runs"),
        ("one", "exactly one of these: two runs"),
        ("one two --base HEAD --test express", "exactly one of these: two runs"),
        ("--copy --base HEAD --test express", "exactly one of these: two runs"),
        ("--copy", "--copy takes a single implementation"),
        ("--copy --test express --part 1/2", "--part: --base and --copy measure both versions in the same run"),
        ("--base HEAD --test express --part 1/2", "--part: --base and --copy measure both versions in the same run"),
        pytest.param(
            "--base no-such-commit", "'no-such-commit' is not a commit", marks=pytest.mark.needs_extra("gate")
        ),
        ("one two --markdown", "to compare a service, give --base"),
    ],
)
def test_contradicting_flags_are_usage_errors(words: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["compare", *words.split(), "--no-install"]) == 2
    assert message in capsys.readouterr().err


def test_report_writes_each_format_to_its_target(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, "20260101-a", 1, SPEEDS)
    arguments = ["--results", str(tmp_path)]
    assert cli.main(["report", *arguments]) == 0
    assert "slow serves 0.50× as many requests as fast" in " ".join(capsys.readouterr().out.split())
    assert cli.main(["report", "--format", "json", "--output", str(tmp_path / "it.json"), *arguments]) == 0
    assert json.loads((tmp_path / "it.json").read_text())["run_id"] == "20260101-a"
    for form in ("markdown", "techempower"):
        assert cli.main(["report", "--format", form, *arguments]) == 0
        text = capsys.readouterr().out
        assert [name for name in SPEEDS if name not in text] == []
    assert cli.main(["report", "--format", "jsn", *arguments]) == 2
    assert "did you mean json?" in capsys.readouterr().err


def test_a_run_is_compared_with_a_published_round(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, "20260101-a", 1, SPEEDS)
    entry = {"startTime": 1, "endTime": 16}
    raw = {"json": {"fast": [{**entry, "totalRequests": 100}], "slow": [{**entry, "totalRequests": 400}]}}
    published = tmp_path / "round.json"
    published.write_text(json.dumps({"name": "Round 99", "rawData": raw, "duration": 15}))
    assert cli.main(["compare", str(published), "20260101", "--results", str(tmp_path)]) == 0
    text = capsys.readouterr().out
    assert "Round 99" in text
    assert "json: 0 of 1 pairs in the same order" in text
    assert ClosedLoop(connections=64).label not in text  # the loads of the two runs differ, so the report names none


@pytest.mark.parametrize("flags", [("--base", "HEAD"), ("--copy",)])
def test_a_dry_run_measures_nothing(flags: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--test", "express", "--type", "json", "--runtime", "local", "--dry-run", "--results", str(tmp_path))
    assert cli.main(["compare", *flags, *words]) == Exit.OK
    assert f"express{BASE if flags[0] == '--base' else COPY}  json" in capsys.readouterr().out
    assert not list(tmp_path.iterdir())


def test_recorded_runs_have_no_dry_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert compared(tmp_path, "--dry-run") == Exit.USAGE
    assert "--dry-run predicts a measurement" in capsys.readouterr().err
