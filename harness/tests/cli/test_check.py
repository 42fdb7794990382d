"""``./tfb check`` installs tools, runs stages, and reports failed and skipped stages."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from _pytest.mark.expression import Expression

from harness.cli import check
from harness.cli.check import ENGINE, Stage, stages
from harness.cli.scans import NOT_JUDGED
from harness.errors import Exit, UsageError
from harness.paths import REPOSITORY
from harness.provisioning import requirements
from harness.provisioning.requirements import ToolRequirement

ABSENT = ToolRequirement(kind="no-such-tool", condition=">=1", required_by=(), tool=None)
Checked = Callable[..., tuple[Exit, str]]


def python(name: str, code: str, *needs: str) -> Stage:
    return Stage(name=name, command=(sys.executable, "-c", code), needs=needs)


@pytest.fixture
def checked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Checked:
    """Return a function that runs stages with a container engine, and returns the exit code and the output."""
    monkeypatch.setenv("TFB_STATE", str(tmp_path / "state"))
    monkeypatch.setattr(requirements, "engine_responds", lambda: True)

    def run(planned: Sequence[Stage], needs: Sequence[ToolRequirement] = (), **more: object) -> tuple[Exit, str]:
        options: dict[str, object] = {"consent": "no", "bring_engine": False, **more}
        code = check.check(planned, needs, **options)  # type: ignore[arg-type]
        streams = capfd.readouterr()
        return code, streams.out + streams.err

    return run


def test_all_stages_run_after_a_failure(checked: Checked) -> None:
    fine, bad = python("fine", "print('done', 7)"), python("bad", "raise SystemExit(3)")
    code, output = checked([bad, fine])
    assert (code, "done 7" in output) == (Exit.FAILED, True)
    assert output.endswith("tfb check: failed: bad\n")
    code, output = checked([fine])
    assert (code, output.splitlines()[-1]) == (Exit.OK, "tfb check: all passed")


def test_stages_without_tools_are_skipped_with_a_remedy(checked: Checked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requirements, "engine_responds", lambda: False)
    stages_to_run = [python("tool's", "print(1)", "no-such-tool"), python("image", "print(1)", ENGINE)]
    code, output = checked([*stages_to_run, python("fine", "print('ran')")], [ABSENT])
    assert (code, "ran" in output) == (Exit.ENVIRONMENT, True)
    assert "not run (no-such-tool >=1 is missing: not found on PATH; " in output
    assert "): tool's; not run (no container engine responds: on Debian" in output


@pytest.mark.parametrize("consent", ["yes", "no"])
def test_the_engine_runs_during_the_stages_with_consent(
    consent: str, checked: Checked, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed: list[str] = []

    def install(needs: Sequence[ToolRequirement], *_: object) -> tuple[str, ...]:
        installed.extend(need.kind for need in needs)
        return ()

    monkeypatch.setattr(requirements, "engine_responds", lambda: False)
    monkeypatch.setattr(requirements, "can_install_engine", lambda: True)
    monkeypatch.setattr(requirements, "missing_packages", lambda _: ("no-such-tool",))
    monkeypatch.setattr(requirements, "install_missing", install)
    for name in ("INSTALL", "START", "STOP"):
        monkeypatch.setattr(requirements, f"ENGINE_{name}", ("echo", "engine", name))
    _, output = checked([python("fine", "print('ran')")], [ABSENT], consent=consent, bring_engine=True)
    assert installed == (["no-such-tool"] if consent == "yes" else [])
    order = re.findall(r"^(engine (?:INSTALL|START|STOP)|ran)$", output, re.MULTILINE)
    assert order == (["engine INSTALL", "engine START", "ran", "engine STOP"] if consent == "yes" else ["ran"])


def test_unjudged_tests_pass_and_skipped_tests_exit_three(checked: Checked) -> None:
    code = "import json, os; open(os.environ['TFB_SKIPPED'], 'a').write(json.dumps({0}) + '\\n')"
    busy = python("busy", code.format(["test_truth.py (4 tests)", f"{NOT_JUDGED}the CPUs were busy"]))
    status, output = checked([busy])
    assert status is Exit.OK
    assert output.endswith("tfb check: all passed; not judged: the CPUs were busy: test_truth.py (4 tests)\n")
    lacks = python("lacks", code.format(["test_spread.py (2 tests)", "rsync is not here"]))
    status, output = checked([busy, lacks])
    assert status is Exit.ENVIRONMENT
    assert "tfb check: not run (rsync is not here): test_spread.py (2 tests); not judged: the CPUs" in output


@pytest.mark.e2e  # slow, because pytest runs twice
def test_failed_tests_of_real_servers_run_again(tmp_path: Path, checked: Checked) -> None:
    (tmp_path / "test_it.py").write_text(
        "from pathlib import Path\n"
        "def ran(name):\n"
        "    path = Path(__file__).with_name(name)\n"
        "    path.write_text(path.read_text() + 'x' if path.exists() else 'x')\n"
        "    return len(path.read_text())\n"
        "def test_unsteady():\n    assert ran('unsteady') == 2\n"
        "def test_steady():\n    assert ran('steady') == 1\n"
    )
    command = (sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "--rootdir", str(tmp_path), str(tmp_path))
    code, output = checked([Stage(name="of servers", command=command, cwd=tmp_path, retry=True)])
    assert code is Exit.OK
    assert output.endswith("tfb check: all passed; failed once and passed on retry: of servers\n")


def test_an_interrupt_ends_both_commands_of_a_stage(tmp_path: Path) -> None:
    one, beside = tmp_path / "one", tmp_path / "beside"
    one.mkdir()
    beside.mkdir()
    slow = (
        "import time, signal, sys\n"
        "signal.signal(15, lambda *_: sys.exit(open(sys.argv[1] + '/ended', 'w').close()))\n"
        "open(sys.argv[1] + '/ready', 'w').close()\n"
        "time.sleep(60)"
    )
    code = (
        "import sys\nfrom harness import cli\nfrom harness.cli import check\nfrom harness.cli.check import Stage\n"
        "from harness.host import interruption, process\n"
        "interruption.install_handlers(process.terminate_all, process.kill_all)\n"
        f"one, beside = ((sys.executable, '-c', {slow!r}, folder) for folder in ({str(one)!r}, {str(beside)!r}))\n"
        "found = [Stage(name='slow', command=one, alongside=beside)]\n"
        "sys.exit(cli.guarded(lambda: check.check(found, (), 'no', bring_engine=False)))\n"
    )
    child = subprocess.Popen([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": str(REPOSITORY)})
    until = time.monotonic() + 60
    while not all((folder / "ready").exists() for folder in (one, beside)) and time.monotonic() < until:
        time.sleep(0.05)
    child.send_signal(signal.SIGINT)
    assert child.wait(60) == 130
    assert [(folder / "ended").exists() for folder in (one, beside)] == [True, True]


def test_each_extent_of_a_check_has_its_stages() -> None:
    fast, usual, everything = ({stage.name for stage in stages(extent)} for extent in ("fast", "usual", "all"))
    assert fast < usual < everything
    assert {"shell scripts", "workflows"} <= fast
    audits = {"audit of Python packages", "audit of npm packages", "audit of crates"}
    assert usual - fast == {"page in a browser", "four servers verified", *audits}
    assert {"workflow syntax", "fuzz"} <= everything
    assert {
        "gallery, faults and adversarial tests",
        "tests of real servers",
        "several machines",
        "other implementations",
    } <= everything
    assert 'exec ./tfb check --all --yes "$@"' in (REPOSITORY / ".ci" / "run").read_text()


@pytest.mark.parametrize(
    "marks",
    [
        *("", "simulation", "gallery", "gallery e2e", "fault", "fault docker", "adversarial", "adversarial e2e"),
        *("adversarial docker", "e2e", "docker", "docker e2e", "machines docker", "machines e2e", "every e2e"),
    ],
)
def test_each_test_belongs_to_one_stage(marks: str) -> None:
    expressions = [each.command[each.command.index("-m", 2) + 1] for each in stages("all") if "pytest" in each.command]
    selecting = [
        text for text in expressions if Expression.compile(text).evaluate(lambda name, /, **_: name in marks.split())
    ]
    assert len(selecting) == 1


def test_the_jobs_of_ci_contain_each_stage_once() -> None:
    workflow = (REPOSITORY / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    assert sorted(re.findall(r'"([^"]+)"', workflow.partition("steps:")[0])) == sorted(
        each.name for each in stages("all")
    )


def test_only_the_named_stages_run(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []
    monkeypatch.setattr(check, "check", lambda planned, *_, **__: ran.extend(each.name for each in planned))
    check.command(only=("lint", "types"))
    assert ran == ["lint", "types"]
    with pytest.raises(UsageError, match="unknown stage 'lnt'; did you mean lint"):
        check.command(only=("lnt",))


def test_retries_have_no_time_limit(checked: Checked) -> None:
    code = f"import os; print('limit', os.environ[{check.END_VARIABLE!r}] != ''); raise SystemExit(1)"
    status, output = checked([replace(python("of servers", code), retry=True)])
    assert status == Exit.FAILED
    assert re.findall("limit (.*)", output) == ["True", "False"]


def test_no_test_starts_after_the_end(tmp_path: Path) -> None:
    environment = {**os.environ, check.END_VARIABLE: str(time.time() - 1), "TFB_SKIPPED": str(tmp_path / "skipped")}
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "harness/tests/test_plain_text.py"]
    completed = subprocess.run(words, cwd=REPOSITORY, env=environment, check=False, capture_output=True, text=True)
    assert (completed.returncode, " passed" in completed.stdout) == (0, False)
    name, reason = json.loads((tmp_path / "skipped").read_text().splitlines()[0])
    assert (name.startswith("harness/tests/test_plain_text.py"), reason.startswith(NOT_JUDGED)) == (True, True)
