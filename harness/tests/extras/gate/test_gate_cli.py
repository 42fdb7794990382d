"""Output formats of ``./tfb compare --base``."""

from pathlib import Path

import numpy as np
import pytest

from harness import cli
from harness.cli.flags import RunFlags
from harness.cli.output import VerdictOutputs
from harness.errors import BuildError, EnvironmentLacksError, Exit, StoreError, TfbError
from harness.extras.gate import cli as gate_cli
from harness.extras.gate.cli import compare, confirm, fit_processes_to_time, publish_result
from harness.extras.gate.judge import GateResult, RequestVerdict
from harness.plan import profile
from harness.plan.run_settings import Settings
from harness.plan.service import ServiceFile
from harness.records.verdicts import Verdict
from harness.stats.ranking_model import Ratio
from harness.tests.extras.gate.test_judge import judged, session


def test_verdict_is_printed_and_added_to_history(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    generator, kept = np.random.default_rng(4), tmp_path / "history"
    for number, (slower, code) in enumerate(((1.0, Exit.OK), (1.3, Exit.FAILED))):
        result = judged(session(generator, slower, noise=0.02)).model_copy(update={"head": f"v{number}"})
        assert publish_result(result, VerdictOutputs(history=str(kept))) == code
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[2] for line in lines[-2:]] == ["v0", "v1"]
    assert "slower: item 1." in lines[-1]
    assert kept.read_text(encoding="utf-8").count("\n") == 2
    assert publish_result(result, VerdictOutputs(markdown=True)) == Exit.FAILED
    assert "\n| request | verdict |" in capsys.readouterr().out
    odd = RequestVerdict(request="item", verdict="failed", reason="<b>\u2028head\nbye")
    result = result.model_copy(update={"head": "v2", "requests": (odd,), "verdict": "failed"})
    for number in (3, 4):  # a session adds one line, even if the reason contains line breaks
        publish_result(result, VerdictOutputs(history=str(kept), markdown=True))
        assert kept.read_text(encoding="utf-8").count("\n") == number
        assert "<b>" not in capsys.readouterr().out


def test_a_history_is_drawn_request_by_request(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    generator, file = np.random.default_rng(4), tmp_path / "history"
    found = [judged(session(generator, slower)).model_copy(update={"head": "v1"}) for slower in (1.0, 1.0, 1.2)]
    file.write_text("".join(f"{result.model_dump_json()}\n" for result in found), encoding="utf-8")
    assert cli.main(["history", str(file)]) == Exit.OK
    lines = capsys.readouterr().out.splitlines()
    drawn = lines[lines.index("item:") + 1 : lines.index("item:") + 4]
    assert drawn[-1].index("│") < drawn[-1].index("●")
    assert drawn[-1].endswith("x")
    assert "slower: item" in lines[-1]


def test_page_is_escaped_and_self_contained(tmp_path: Path) -> None:
    result = judged(session(np.random.default_rng(1), 1.2)).model_copy(update={"head": "<b>&"})
    first, *others = result.requests
    wide = first.model_copy(update={"ratio": Ratio(value=1.0, low=1e-4, high=1e4)})
    result = result.model_copy(update={"requests": (wide, *others)})
    publish_result(result, VerdictOutputs(html=str(tmp_path / "page.html")))
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "&lt;b&gt;&amp;" in text
    assert '<h1 class="verdict-slower">slower: item' in text
    assert text.count("●") == len(result.requests)
    assert "<script" not in text
    assert "http" not in text.replace("http-equiv", "")


def test_full_disk_is_reported_after_the_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(EnvironmentLacksError, match="cannot write /dev/full: No space left on device"):
        publish_result(judged(session(np.random.default_rng(1), 1.2)), VerdictOutputs(html="/dev/full"))
    assert "slower: item" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("minutes", "requests", "language", "processes", "note"),
    [
        (5, 3, "", 5, ""),
        (2, 3, "", 2, ""),
        (5, 10, "", 2, "the time is too short for 10 requests: use --time 7m or more"),
        (1, 1, "", 2, "the time is too short for 1 request: use --time 2m or more"),
        (5, 3, "Java", 3, ""),
        (2, 3, "java", 2, "the time is too short for 3 requests and a just-in-time compiler: use --time 4m or more"),
    ],
)
def test_time_determines_processes_and_short_times_warn(
    minutes: int, requests: int, language: str, processes: int, note: str
) -> None:
    asked = [{"name": f"r{number}", "path": "/"} for number in range(requests)]
    file = ServiceFile.model_validate({"service": {"start": "x", "language": language}, "request": asked})
    gate = profile.load_profile("gate")
    timed = gate.interleaved.model_copy(update={"time_seconds": 60.0 * minutes})
    notes: list[str] = []
    chosen = fit_processes_to_time(gate.model_copy(update={"interleaved": timed}), file, notes)
    assert (chosen.processes.minimum, chosen.processes.maximum) == (processes, processes)
    assert notes == ([note] if note else [])
    budget = [each | {"budget_p99": "1s"} for each in asked]
    file = ServiceFile.model_validate({"service": {"start": "x", "language": language}, "request": budget})
    chosen = fit_processes_to_time(gate.model_copy(update={"interleaved": timed}), file, notes)
    assert chosen.processes.minimum == max(4, processes)


@pytest.mark.parametrize("value", ["-1", "0", "0%", "-0", "nan", "inf", "-inf", "1e400", "101", "five", "", "5%%"])
def test_thresholds_outside_the_range_are_refused(value: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["compare", "--base", "dir:.", f"--threshold={value}"]) == Exit.USAGE
    assert (
        f"--threshold: {value!r} is not a valid percentage: give a number above 0 and at most 100"
        in capsys.readouterr().err
    )


@pytest.mark.parametrize(
    ("found", "usual", "bisect"),
    [
        ("same", Exit.OK, 0),
        ("faster", Exit.OK, 0),
        ("slower", Exit.FAILED, 1),
        ("failed", Exit.FAILED, 125),
        ("cannot tell", Exit.CANNOT_TELL, 125),
    ],
)
def test_bisect_skips_commits_without_an_answer(found: Verdict, usual: int, bisect: int) -> None:
    one = RequestVerdict(request="item", verdict=found, reason="why", minutes_more=1.0)
    result = judged(session(np.random.default_rng(1), 1.0)).model_copy(update={"verdict": found, "requests": (one,)})
    assert publish_result(result, VerdictOutputs()) == usual
    assert publish_result(result, VerdictOutputs(bisect=True)) == bisect
    interrupted = result.model_copy(update={"interrupted": True})
    assert publish_result(interrupted, VerdictOutputs(bisect=True)) == Exit.INTERRUPTED  # stops ``git bisect run``


@pytest.mark.parametrize("text", [None, "[service", '[service]\nstart = "x"\n', '[service]\nbiuld = "x"\n'])
def test_bisect_skips_commits_without_a_valid_file(
    text: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if text is not None:
        (tmp_path / "tfb.toml").write_text(text, encoding="utf-8")
    arguments = ["compare", "--service", str(tmp_path), "--head", f"dir:{tmp_path}", "--base", f"dir:{tmp_path}"]
    assert cli.main([*arguments, "--bisect"]) == Exit.UNTESTABLE
    assert "tfb.toml" in capsys.readouterr().err
    assert cli.main(arguments) == Exit.USAGE
    assert cli.main([*arguments, "--bisect", "--strict"]) == Exit.USAGE
    absent = ["compare", "--service", str(tmp_path), "--head", "dir:/none", "--base", f"dir:{tmp_path}"]
    assert (cli.main([*absent, "--bisect"]), cli.main(absent)) == (Exit.UNTESTABLE, Exit.USAGE)


@pytest.mark.parametrize("error", [EnvironmentLacksError("no engine"), StoreError("disk full"), BuildError("no")])
def test_bisect_skips_commits_after_every_error(
    error: TfbError, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> int:
        raise error

    monkeypatch.setattr("harness.extras.gate.cli.run_session", fail)
    assert cli.main(["compare", "--service", str(tmp_path), "--base", "main", "--bisect"]) == Exit.UNTESTABLE


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("slower", "slower", "slower"),
        ("slower", "same", "cannot tell"),
        ("slower", "faster", "cannot tell"),
        ("slower", "cannot tell", "cannot tell"),
        ("slower", None, "cannot tell"),
        ("slower", "failed", "failed"),
        ("same", "same", "same"),
        ("same", "slower", "cannot tell"),
        ("same", "failed", "failed"),
        ("faster", "faster", "faster"),
        ("faster", "same", "faster"),
        ("not in base", "not in base", "not in base"),
    ],
)
def test_only_repeated_slowdowns_are_confirmed(first: Verdict, second: Verdict | None, expected: Verdict) -> None:
    template = judged(session(np.random.default_rng(1), 1.0))

    def of(verdict: Verdict | None) -> GateResult:
        item = () if verdict is None else (RequestVerdict(request="item", verdict=verdict, reason="why"),)
        other = RequestVerdict(request="other", verdict="same")
        return template.model_copy(update={"requests": (*item, other), "verdict": verdict or "same", "minutes": 2.0})

    confirmed = confirm(of(first), of(second))
    assert [one.verdict for one in confirmed.requests] == [expected, "same"]
    assert confirmed.verdict == ("same" if expected == "not in base" else expected)
    assert confirmed.minutes == 4.0
    assert any("both sessions" in note for note in confirmed.notes) is (expected == "slower")


@pytest.mark.parametrize(
    ("verdicts", "asked", "sessions", "code"),
    [
        (("slower", "slower"), True, 2, Exit.FAILED),
        (("slower", "same"), True, 2, Exit.CANNOT_TELL),
        (("slower",), False, 1, Exit.FAILED),
        (("same",), True, 1, Exit.OK),
        (("failed",), True, 1, Exit.FAILED),
        (("cannot tell",), True, 1, Exit.CANNOT_TELL),
    ],
)
def test_a_second_session_follows_only_slower(
    verdicts: tuple[Verdict, ...], asked: bool, sessions: int, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    template, seeds = judged(session(np.random.default_rng(1), 1.0)), []

    def run(_: object, settings: Settings, __: object) -> GateResult:
        seeds.append(settings.seed)
        verdict = verdicts[len(seeds) - 1]
        one = RequestVerdict(request="item", verdict=verdict, reason="why")
        return template.model_copy(update={"requests": (one,), "verdict": verdict})

    monkeypatch.setattr(gate_cli, "run_session", run)
    assert compare(Path(), "main", None, RunFlags(), 0.05, VerdictOutputs(confirm=asked)) == code
    assert len(set(seeds)) == len(seeds) == sessions


def test_an_interrupted_session_enters_no_history(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = judged(session(np.random.default_rng(1), 1.2)).model_copy(update={"interrupted": True})
    kept = tmp_path / "history"
    assert publish_result(result, VerdictOutputs(history=str(kept))) == Exit.INTERRUPTED
    assert not kept.exists()
    assert "slower: item" in capsys.readouterr().out


def test_missing_tfb_toml_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["compare", "--base", "main", "--markdown"]) == Exit.USAGE
    assert "init writes a tfb.toml" in capsys.readouterr().err


def test_two_folders_need_no_third(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["compare", "--base", f"dir:{tmp_path}", "--head", f"dir:{tmp_path / 'b'}"]) == Exit.USAGE
    assert f"{tmp_path / 'b'} is not a folder" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words", ["--concurrency-levels 8", "--runtime docker", "--type json", "--server-port 80", "--dry-run", "--copy"]
)
def test_flags_without_meaning_for_services_are_refused(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["compare", "--base", "dir:.", "--head", "dir:.", *words.split()]) == Exit.USAGE
    assert f"{words.split()[0]}" in (said := capsys.readouterr().err)
    assert "leave" in said or "remove" in said


@pytest.mark.parametrize(("text", "expected"), [(None, "To create a history"), ("{}\n", "line 1 is not a result")])
def test_what_is_no_history_is_said(
    tmp_path: Path, text: str | None, expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if text is not None:
        (tmp_path / "h").write_text(text, encoding="utf-8")
    assert cli.main(["history", str(tmp_path / "h")]) == Exit.USAGE
    assert expected in capsys.readouterr().err


def test_unwritable_outputs_are_reported_before_measuring(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    where = ["--base", f"dir:{tmp_path}", "--html", str(tmp_path / "none" / "page.html")]
    assert cli.main(["compare", "--service", str(tmp_path), *where, "--yes"]) == Exit.USAGE
    assert "there is no folder" in capsys.readouterr().err
