"""Flags become settings: TechEmpower's meaning, flags over the profile, errors with the nearest allowed word."""

import pytest

from harness.benchmarks.simulation import run_info
from harness.cli.arguments import parser
from harness.cli.settings import resumed, settings
from harness.errors import UsageError
from harness.host import machine
from harness.plan.config import Settings
from harness.plan.profile import Replication


def parse(text: str) -> Settings:
    words = text.split()
    return settings(parser().parse_args(words), words)


def test_a_run_of_everything_has_the_default_profile_and_its_six_test_types() -> None:
    known = parse("--test run")
    assert known.selection.test == ("run",)
    assert known.profile.name == "quick"
    assert known.test_types == ("json", "plaintext", "db", "query", "fortune", "update")
    all_of_techempower = ("json", "plaintext", "db", "query", "cached-query", "fortune", "update")
    assert set(parse("--test run --type all").test_types) == set(all_of_techempower)
    assert parse("--test run --type hello fan-out").test_types == ("hello", "fan-out")
    assert parse("--test run --profile standard").test_types == known.test_types
    assert (known.mode, known.runtime, known.order, known.consent) == ("benchmark", "auto", "blocks", "ask")


def test_types_keep_the_order_of_the_registry() -> None:
    assert parse("--type db json").test_types == ("json", "db")


def test_levels_may_be_a_sequence_with_its_end_included() -> None:
    levels = parse("--query-levels 1 5:5:20 --concurrency-levels 8 16 8").profile.levels
    assert levels.query == (1, 5, 10, 15, 20)
    assert levels.concurrency == (8, 16)


def test_flags_win_over_the_profile() -> None:
    known = parse("--profile smoke --duration 7 --replicates 4").profile
    assert known.duration_seconds == 7
    assert (known.replication.minimum, known.replication.maximum, known.replication.looks) == (4, 4, ())
    assert known.warm_up == parse("--profile smoke").profile.warm_up


@pytest.mark.parametrize(("text", "seconds"), [("90s", 90), ("90", 90), ("10m", 600), ("1h30m", 5400)])
def test_the_time_of_a_run(text: str, seconds: float) -> None:
    rounds = parse(f"--time {text}").profile.rounds
    assert rounds is not None
    assert rounds.time_seconds == seconds


def test_a_number_of_replicates_means_fresh_processes_one_after_another() -> None:
    assert parse("--test run").profile.rounds is not None
    assert parse("--test run --replicates 3").profile.rounds is None


def test_a_seed_is_drawn_when_none_is_given() -> None:
    assert parse("--seed 5").seed == 5
    assert len({parse("--test run").seed for _ in range(5)}) == 5


def test_the_name_of_the_results_may_hold_the_time() -> None:
    assert parse("--results-name %Y").results_name.startswith("20")
    assert parse("--results-name nightly").results_name == "nightly"


@pytest.mark.parametrize(
    ("flags", "cpus", "placed"),
    [
        ("", (0, 1, 2, 3), (None, None)),
        ("--order duet", (0, 1, 2, 3), ("0,1", "2,3")),
        ("--order duet", (4, 6, 7), ("4", "6,7")),
        ("--order duet", (0,), (None, None)),
        ("--order duet --cpuset-cpus 1", (0, 1, 2, 3), (None, None)),
    ],
)
def test_duets_have_their_servers_apart_from_the_generators(
    flags: str, cpus: tuple[int, ...], placed: tuple[str | None, str | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "usable_cpus", lambda: cpus)
    profile = parse(f"--test run {flags}").profile
    assert (profile.server_cpus, profile.other_cpus) == placed


@pytest.mark.parametrize(("flags", "consent"), [("", "ask"), ("--yes", "yes"), ("--no-install --yes", "no")])
def test_consent_to_install(flags: str, consent: str) -> None:
    assert parse(f"--test run {flags}").consent == consent


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("--tset run", "unknown argument '--tset'; did you mean --test"),
        ("reprot", "unknown argument 'reprot'; did you mean report?"),
        ("--runtime locl", "argument --runtime: unknown value 'locl'; did you mean local?"),
        ("--mode bench", "argument -m/--mode: unknown value 'bench'; did you mean benchmark?"),
        ("--time soon", "--time: 'soon' is not a time such as 90s, 10m or 1h30m"),
        ("--time 5m --profile standard", "--time: profile standard takes its replicates"),
        ("--type jsn", "--type: unknown test type 'jsn'; did you mean json?"),
        ("--duration 1.5", "'1.5' is not a whole number of seconds above 0"),
        ("--query-levels 5:1", "'5:1' is neither a whole number above 0 nor a sequence start:step:end"),
        ("--query-levels 5:0:9", "'5:0:9' is neither"),
        ("--query-levels 9:1:5", "'9:1:5' is neither"),
        ("--replicates 0", "'0' is not a whole number above 0"),
        ("--server-port 99999", "'99999' is not a port: 1 to 65535"),
        ("--frameworks /no/such/folder", "--frameworks: /no/such/folder is not a folder"),
        ("--test", "argument --test: expected at least one argument"),
    ],
)
def test_a_wrong_word_is_a_usage_error_that_says_what_is_allowed(text: str, message: str) -> None:
    with pytest.raises(UsageError) as error:
        parse(text)
    assert message in str(error.value)


def test_a_resumed_run_has_its_own_settings_and_today_s_output() -> None:
    info = run_info(("a",), Replication()).model_copy(
        update={"command": ("--test", "a", "--duration", "9"), "seed": 11, "name": "first"}
    )
    known = resumed(parse("--resume latest --quiet"), info)
    assert (known.selection.test, known.profile.duration_seconds, known.seed) == (("a",), 9, 11)
    assert (known.results_name, known.resume, known.quiet) == ("first", "latest", True)


def test_a_calibration_cannot_be_resumed() -> None:
    info = run_info(("a",), Replication()).model_copy(update={"command": ("calibrate", "--test", "a")})
    with pytest.raises(UsageError, match=r"was made by calibrate and cannot be resumed"):
        resumed(parse("--resume latest"), info)
