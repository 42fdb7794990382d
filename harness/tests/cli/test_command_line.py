"""Command-line verbs, TechEmpower's flags, and usage errors."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from harness import cli
from harness.cli.listing import initials
from harness.cli.resume import recorded_settings
from harness.cli.settings import resolve_settings
from harness.cli.verbs import REPLACED, VERBS, parse_recorded
from harness.errors import BuildError, EnvironmentLacksError, Exit, UsageError
from harness.host import interruption
from harness.paths import CONFIG_FILE
from harness.plan.discovery import scan_folders
from harness.plan.run_settings import Settings
from harness.tests.doubles import records


def understood(text: str) -> Settings:
    """Return the settings of a command line, with fixed values for those that differ between calls."""
    words = text.split()
    settings = resolve_settings(parse_recorded(words))
    return replace(settings, command=(), seed=settings.seed if "--seed" in words else 0, results_name="")


@pytest.mark.parametrize(
    ("verb", "flags"),
    [
        ("run express axum", "--test express axum"),
        ("run express --profile smoke axum", "--test express axum --profile smoke"),
        ("run --test-lang Go", "--test-lang Go"),
        ("run express --type json db", "-m benchmark --test express --type json db"),
    ],
)
def test_a_verb_equals_techempower_s_flags(verb: str, flags: str) -> None:
    assert understood(verb) == understood(flags)


@pytest.mark.parametrize(
    ("text", "mode", "test"),
    [
        ("--mode verify --test express", "verify", ("express",)),
        ("--mode=debug --test=express", "debug", ("express",)),
        ("--test-dir Java/resteasy", "benchmark", ()),
        ("--test a b --exclude b", "benchmark", ("a", "b")),
    ],
)
def test_techempower_s_flags_need_no_verb(text: str, mode: str, test: tuple[str, ...]) -> None:
    known = understood(text)
    assert (known.mode, known.selection.test) == (mode, test)


def test_flags_override_single_values_of_the_profile() -> None:
    profile = understood("run --profile standard --duration 7 --processes 4 --generator wrk --time 30m").profile
    usual = understood("run --profile standard").profile
    assert (profile.duration_seconds, profile.generator) == (7, "wrk")
    assert (profile.processes.minimum, profile.processes.maximum, profile.processes.looks) == (4, 4, ())
    assert profile.warm_up == usual.warm_up
    assert profile.interleaved == usual.interleaved.model_copy(update={"time_seconds": 1800})


@pytest.mark.needs_extra("orders")
def test_levels_times_and_goals_are_parsed() -> None:
    levels = understood("run --concurrency-levels 16 8:8:24 --query-levels 1 20").profile.levels
    assert (levels.concurrency, levels.query) == ((16, 8, 24), (1, 20))  # duplicates are removed
    for text, seconds in (("90s", 90), ("90", 90), ("10m", 600), ("1h30m", 5400)):
        assert understood(f"run --time {text}").profile.interleaved.time_seconds == seconds
    assert understood("run --profile latency --latency-goal p99.9=500us").profile.open_loop.goal.seconds == 5e-4
    orders = understood("run --type order --latency-goal p50=1s").profile.orders
    assert (orders.goal.percentile, orders.goal.seconds) == (50, 1)


def test_defaults_are_to_ask_and_a_random_seed() -> None:
    consents = [understood(words).consent for words in ("run", "run --yes", "run --no-install --yes")]
    drawn = {resolve_settings(parse_recorded(["run"])).seed for _ in range(5)}
    assert (consents, understood("run --seed 5").seed, len(drawn)) == (["ask", "yes", "no"], 5, 5)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("--tset run", "Did you mean --test"),
        ("reprot", "unknown verb 'reprot'; did you mean report?"),
        ("run --runtime locl", 'Did you mean "local"?'),
        ("--mode bench", '"bench" for --mode'),
        ("run --time soon", "--time: 'soon' is not a valid duration. Use for example 90s, 10m or 1h30m"),
        ("run --type jsn", "--type: unknown test type 'jsn'; did you mean json?"),
        ("run --type", "--type requires at least 1"),
        ("run --duration 1.5", "--duration"),
        ("run --duration 0", "--duration"),
        ("run --query-levels 5:1", "'5:1' is neither a whole number above 0 nor a sequence start:step:end"),
        ("run --query-levels 9:1:5", "9:1:5: give 1 to 1000 levels"),
        ("run --query-levels 1:1:5000", "give 1 to 1000 levels, each at most"),
        ("run --latency-goal p99=10ms", "profile quick does not search for the server's capacity"),
        ("run --profile latency --latency-goal fast", "'fast' is not a goal such as p99=10ms"),
        ("run --frameworks /no/such/folder", "--frameworks: /no/such/folder is not a folder"),
        ("run --hosts three --server-host a", "--hosts already defines all machines"),
        ("verify --seed 1", "Unknown option: --seed"),
        ("run --test express", "remove --test: write `./tfb run NAME`"),
        ("--mode verify --resume", "--resume works only with --mode benchmark"),
        ("--test express --format junit", "--format works only with --mode verify"),
        ("run --concurrency-levels 1:1:10000000000", "is neither a whole number"),
        *(
            (f"run --cpuset-cpus {text}", f"--cpuset-cpus: '{text}' is not a CPU list such as 0-3,8")
            for text in ("3-1", "1,,2", "0-999999999999")
        ),
        ("run --cpuset-cpus 0-4095", "is not available to this process"),
        (f"run --duration {'9' * 5000}", "--duration"),
        ("run --results-name \udcff\udcfe", "argument 3 is not valid utf-8"),
        ("run --latency-goal p0=1ms --type order", "'p0=1ms' is not a goal such as p99=10ms. Use a percentile"),
        ("run --allow a", "--allow: 'a' does not have the form NAME=PRIVILEGE"),
        ("run --allow a=iouring", "--allow a: unknown privilege 'iouring'; did you mean io_uring?"),
        ("run --resume ../../etc", "run '../../etc' does not exist"),
        ("report no-such-run", "run 'no-such-run' does not exist"),
        ("compare a b", "run 'a' does not exist"),
    ],
)
def test_wrong_arguments_are_usage_errors(text: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(text.split()) == Exit.USAGE
    stderr = capsys.readouterr().err
    assert message in stderr
    assert stderr.startswith("tfb: ")


@pytest.fixture
def frameworks(tmp_path: Path) -> Path:
    """Create a tree with three implementations."""
    entries: list[tuple[str, str, list[str]]] = [
        ("Java", "resteasy", ["core"]),
        ("JavaScript", "express", ["core"]),
        ("Rust", "axum", []),
    ]
    for place, name, tags in entries:
        folder = tmp_path / place / name
        folder.mkdir(parents=True)
        entry = {"language": place, "json_url": "/json", "tags": tags, "local": {"run": ["true"]}}
        (folder / CONFIG_FILE).write_text(json.dumps({"framework": name, "tests": [{"default": entry}]}))
    return tmp_path


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("run expres", "unknown name 'expres'; did you mean express"),
        ("run --exclude zzz", "--exclude: unknown name 'zzz'; choose from axum, express, resteasy"),
        ("run --exclude \x1b[2J", "--exclude: unknown name '\\x1b[2J'"),
        ("run --test-lang jav", "--test-lang: unknown name 'jav'; did you mean java?"),
        ("run --test-dir Java/restesy", "unknown name 'java/restesy'; did you mean java/resteasy"),
        ("run --tag cor", "--tag: unknown name 'cor'; did you mean core?"),
    ],
)
def test_unknown_names_get_a_suggestion(
    text: str, message: str, frameworks: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main([*text.split(), "--dry-run", "--frameworks", str(frameworks)]) == Exit.USAGE
    stderr = capsys.readouterr().err
    assert message in stderr
    assert stderr.startswith("tfb: ")


@pytest.mark.parametrize("flag", REPLACED)
def test_replaced_flags_of_techempower_name_an_alternative(flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([flag, "x"]) == Exit.USAGE
    message = capsys.readouterr().err
    assert message.startswith(f"tfb: {flag} is a TechEmpower flag that tfb does not support: use ")
    assert any(word in message for word in (*(f"./tfb {verb}" for verb in VERBS), "--cpuset-cpus"))


def test_a_resumed_run_keeps_its_recorded_settings() -> None:
    then = {"command": ("run", "a", "--duration", "9"), "seed": 11, "name": "first"}
    info = records.info().model_copy(update=then)
    now = parse_recorded(["run", "--resume", "2026", "--quiet"])
    known = recorded_settings(resolve_settings(now), now, info)
    assert (known.selection.test, known.profile.duration_seconds, known.seed) == (("a",), 9, 11)
    assert (known.results_name, known.resume, known.quiet) == ("first", "2026", True)
    planned = parse_recorded(["run", "--resume", "--dry-run"])
    assert recorded_settings(resolve_settings(planned), planned, info).dry_run
    other = parse_recorded(["run", "--resume", "--duration", "3"])
    with pytest.raises(UsageError, match="--duration contradicts --resume"):
        recorded_settings(known, other, info)
    compared = info.model_copy(update={"command": ("compare", "--base", "HEAD")})
    with pytest.raises(UsageError, match="was started by compare and cannot be resumed"):
        recorded_settings(known, now, compared)


def test_list_groups_by_language_with_initials(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert cli.main(["list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    below = lines[lines.index("JavaScript") :]
    assert any(line.startswith("* express  ") and "Node.js" in line for line in below)
    assert any("J json, P plaintext" in line for line in lines)


def test_initials_are_unique() -> None:
    letters = initials(["db", "delay", "d", "dd", "fan-out", "fortune", *(f"d{number}" for number in range(70))])
    assert letters["db"] == "D"
    assert len({letter for letter in letters.values() if letter != "?"}) >= 62
    assert letters["fan-out"] == "F"
    assert letters["fortune"] == "O"


def test_list_tests_prints_names(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--list-tests"]) == 0
    assert {"es4x", "express", "resteasy", "vertx-web"} <= set(capsys.readouterr().out.split())
    tagged = [one.name for one in scan_folders().implementations if one.is_core]
    assert {"es4x", "express", "resteasy", "vertx-web"} <= {*tagged}
    assert cli.main(["--list-tag", "core"]) == 0
    assert capsys.readouterr().out.splitlines() == tagged
    assert cli.main(["list", "--tag", "core", "--json"]) == 0
    assert [i["name"] for i in json.loads(capsys.readouterr().out)] == tagged


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (BuildError("x"), 1),
        (UsageError("x"), 2),
        (EnvironmentLacksError("x"), 3),
        (KeyboardInterrupt(), 130),
        (OSError(28, "No space left on device", "/results/run.json"), 1),
        (ValueError("x"), 1),
    ],
)
def test_each_error_prints_one_line_and_exit_code(
    error: BaseException, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> int:
        raise error

    assert cli.guarded(fail) == code
    message = capsys.readouterr().err
    assert message.startswith("tfb: ")
    assert message.count("\n") == 1


@pytest.mark.parametrize("arguments", [["report", "no-such-run"], ["list", "--test-lang", "no-such-language"]])
def test_errors_after_an_interrupt_exit_as_interrupted(
    arguments: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(interruption, "requested", lambda: True)
    assert cli.main(arguments) == Exit.INTERRUPTED
    assert capsys.readouterr().err == "tfb: interrupted; all started processes have been stopped\n"


def test_a_swallowed_interrupt_exits_as_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interruption, "requested", lambda: True)
    assert cli.guarded(lambda: Exit.FAILED) == Exit.INTERRUPTED
    assert cli.guarded(lambda: Exit.OK) == Exit.OK


def test_errors_caused_by_interrupts_exit_as_interrupted() -> None:
    def load() -> int:
        raise TypeError("invalid schema") from KeyboardInterrupt()

    assert cli.guarded(load) == Exit.INTERRUPTED


def test_the_overview_fits_a_screen(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [verb for verb in VERBS if not any(line.startswith(f"  {verb} ") for line in lines)] == []
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 80
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("tfb 1.0.0")


def test_a_dry_run_prints_json_on_request(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["run", "express", "--type", "json", "--processes", "1", "--dry-run"]
    assert cli.main([*words, "--json"]) == Exit.OK
    plan = json.loads(capsys.readouterr().out)
    assert plan["processes"] == {"minimum": 1, "maximum": 1}
    assert [(cell["implementation"], cell["test_type"]) for cell in plan["cells"]] == [("express", "json")]
    assert cli.main(words) == Exit.OK
    output = capsys.readouterr()
    assert ", 1 process per implementation, " in output.out
    assert "! " not in output.err
    assert cli.main(["run", "express", "--time", "12", "--dry-run"]) == Exit.OK
    assert (
        "! the time limit is enough for 6 trials of 11 cells, but not for each test type in 2"
        in capsys.readouterr().err
    )
