"""``./tfb check`` brings what it may, runs what it can, stops what it started, and names what it left out."""

import itertools
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from harness.cli import check
from harness.cli.stages import ENGINE, MACHINES, NOT_JUDGED, Stage, stages
from harness.errors import Exit
from harness.host import engine, provision, toolchain
from harness.host.provision import Need
from harness.host.toolchain import Tool
from harness.tests.distribution import group
from harness.tests.e2e.test_implementations import KNOWN, OTHERS

RUST = Need(kind="cargo", condition=">=1.85", wanted_by=(), tool=None)
NODE = Need(kind="node", condition=">=20.19", wanted_by=(), tool=Tool(kind="node", version=(22,), program=Path("node")))


class Machine:
    """A machine without apt's right, Docker or anything to compile; ``ran`` names the stages that were run."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        self.ran: list[str] = []
        self.installed: list[str] = []
        self.statuses: dict[str, int] = {}
        self.raises: BaseException | None = None
        self.engine_answers = True
        self.needs: Sequence[Need] = (NODE,)
        self.found = [Stage(name="lint", command=("true",)), Stage(name="tests", command=("true",))]
        monkeypatch.setattr(check, "STATE", tmp_path)
        monkeypatch.setattr(check, "wanted", lambda **_: self.needs)
        monkeypatch.setattr(check, "stages", lambda **_: self.found)
        monkeypatch.setattr(check, "passes", self.passes)
        monkeypatch.setattr(engine, "answers", lambda: self.engine_answers)
        monkeypatch.setattr(engine, "can_be_brought", lambda: True)
        monkeypatch.setattr(provision, "install_missing", self.install)

    def passes(self, stage: Stage, environment: object = None) -> bool:
        self.ran.append(stage.name)
        if stage.command == engine.START:
            self.engine_answers = True
        if self.raises and stage.name == "tests":
            raise self.raises
        return self.statuses.get(stage.name, 0) == 0

    def install(self, missing: Sequence[Need], consent: str, log: Path) -> tuple[str, ...]:
        self.installed += [need.kind for need in missing]
        return ()


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Machine:
    return Machine(monkeypatch, tmp_path)


def test_all_stages_run_even_when_one_fails_and_it_is_named(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    assert check.main([]) == Exit.OK
    assert capsys.readouterr().out.endswith("tfb check: all passed\n")
    machine.statuses["lint"] = 1
    assert check.main([]) == Exit.FAILED
    assert machine.ran == ["lint", "tests"] * 2
    assert capsys.readouterr().err == "tfb check: failed: lint\n"


def test_a_stage_that_lacks_something_is_left_out_and_named_with_what_brings_it(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    machine.needs = (RUST, NODE)
    machine.engine_answers = False
    machine.found += [
        Stage(name="loadgen tests", command=("true",), needs=("cargo",)),
        Stage(name="base image", command=("true",), needs=(ENGINE,)),
    ]
    assert check.main(["--no-install"]) == Exit.ENVIRONMENT
    assert machine.ran == ["lint", "tests"]
    line = capsys.readouterr().err
    assert "not run (cargo >=1.85 is missing: apt-get install cargo" in line
    assert "): loadgen tests; not run (no container engine answers: as root on Debian" in line
    assert machine.installed == []


@pytest.mark.parametrize("words", [["--no-install"], ["--fast", "--yes"]])
def test_without_consent_and_in_the_fast_check_nothing_is_brought(machine: Machine, words: list[str]) -> None:
    machine.needs = (RUST,)
    machine.engine_answers = False
    check.main(words)
    assert (machine.ran, machine.installed) == (["lint", "tests"], [])


def test_with_consent_packages_and_an_engine_come_first_and_the_engine_goes_last(machine: Machine) -> None:
    machine.needs = (RUST, NODE)
    machine.engine_answers = False
    check.main(["--yes"])
    assert machine.installed == ["cargo"]
    assert machine.ran == [
        "packages of a container engine",
        "container engine",
        "lint",
        "tests",
        "container engine's end",
    ]


def test_an_engine_that_was_there_stays(machine: Machine) -> None:
    check.main(["--yes"])
    assert machine.ran == ["lint", "tests"]


def test_an_interruption_stops_the_engine_that_was_started(machine: Machine) -> None:
    machine.engine_answers = False
    machine.raises = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        check.main(["--yes"])
    assert machine.ran[-1] == "container engine's end"


def test_a_stage_finds_the_project_its_python_and_its_state(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    code = (
        "import os, harness; print('state', os.environ['TFB_STATE']); raise SystemExit(os.environ['TFB_PYTHON'] == '')"
    )
    assert check.passes(Stage(name="shown", command=(sys.executable, "-c", code), cwd=tmp_path))
    assert not check.passes(Stage(name="broken", command=(sys.executable, "-c", "raise SystemExit(3)")))
    assert not check.passes(Stage(name="absent", command=("/no/such/program",)))
    streams = capfd.readouterr()
    assert f"state {check.STATE}" in streams.out
    assert "== broken: failed" in streams.out
    assert "/no/such/program is not on this machine" in streams.err


def test_the_fast_check_leaves_out_what_starts_servers_and_containers() -> None:
    slow = {stage.name for stage in stages(fast=False, arguments=())} - {
        stage.name for stage in stages(fast=True, arguments=())
    }
    assert {"page in a browser", "base image", "tests of real servers"} <= slow
    (tests,) = [stage for stage in stages(fast=True, arguments=("-x",)) if stage.name == "tests"]
    assert tests.command[3:7] == ("-ra", "-x", "-m", "not e2e and not docker and not gallery")


def test_a_test_that_could_not_judge_on_a_busy_machine_is_named_and_fails_nothing(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = [("test_truth.py (4 tests)", f"{NOT_JUDGED}in 6.0% of the time the CPUs were busy with something else")]
    monkeypatch.setattr(check, "skips", lambda _: found)
    assert check.main(["--yes"]) == Exit.OK
    assert "all passed; not judged: in 6.0% of the time" in capsys.readouterr().out
    found.append(("test_spread.py (2 tests)", "parallel is not here"))
    assert check.main(["--yes"]) == Exit.ENVIRONMENT
    line = capsys.readouterr().err
    assert line.startswith("tfb check: not run (parallel is not here): test_spread.py (2 tests); not judged: in 6.0%")


def of_servers(folder: Path, passing_runs: set[int]) -> Stage:
    """One test that fails, until it has been run so often, beside one that passes."""
    (folder / "test_it.py").write_text(
        "from pathlib import Path\n"
        "runs = Path(__file__).with_name('runs')\n"
        "def test_unsteady():\n"
        "    runs.write_text(runs.read_text() + 'x' if runs.exists() else 'x')\n"
        f"    assert len(runs.read_text()) in {sorted(passing_runs)}\n"
        "def test_steady():\n"
        "    pass\n"
    )
    command = (sys.executable, "-m", "pytest", "-q", "--rootdir", str(folder), str(folder))
    quick = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return Stage(name="of servers", command=command, cwd=folder, environment=quick, tried_again=True)


@pytest.mark.parametrize(
    ("passing_runs", "status", "word"),
    [
        ({2, 3}, Exit.OK, "all passed; failed once and passed 2 times when tried again: test_it.py::test_unsteady"),
        ({2}, Exit.FAILED, "failed: of servers"),
    ],
)
def test_a_test_of_real_servers_that_failed_passes_only_when_it_passes_each_time_it_is_tried_again(
    passing_runs: set[int],
    status: Exit,
    word: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    stage = of_servers(tmp_path, passing_runs)
    monkeypatch.setattr(check, "stages", lambda **_: (stage,))
    monkeypatch.setattr(check, "lacking", lambda _: {})
    assert check.main(["--no-install"]) == status
    streams = capfd.readouterr()
    assert word in (streams.out if status is Exit.OK else streams.err).splitlines()[-1]


def test_tests_that_did_not_all_run_are_not_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """An interruption leaves one failed test behind, and others that never began."""
    stage = of_servers(tmp_path, {2, 3})
    (tmp_path / "test_later.py").write_text("def test_interrupted():\n    raise KeyboardInterrupt\n")
    monkeypatch.setattr(check, "stages", lambda **_: (stage,))
    monkeypatch.setattr(check, "lacking", lambda _: {})
    assert check.main(["--no-install"]) == Exit.FAILED
    assert (tmp_path / "runs").read_text() == "x"
    assert "tried again" not in capfd.readouterr().err


def test_what_fails_without_real_servers_is_not_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    stage = replace(of_servers(tmp_path, {2, 3}), tried_again=False)
    monkeypatch.setattr(check, "stages", lambda **_: (stage,))
    assert check.main(["--no-install", "--fast"]) == Exit.FAILED
    assert (tmp_path / "runs").read_text() == "x"
    assert capfd.readouterr().err.endswith("tfb check: failed: of servers\n")


def test_a_stage_keeps_its_compiled_python_in_the_state_s_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Also where the environment forbids it to be kept beside the sources."""
    monkeypatch.setattr(check, "STATE", tmp_path)
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    said = "import sys; sys.exit(sys.dont_write_bytecode or sys.pycache_prefix != sys.argv[1])"
    command = (sys.executable, "-S", "-c", said, str(tmp_path / "bytecode"))
    assert check.passes(Stage(name="prefix", command=command))


def test_the_check_brings_what_the_tests_of_queues_start() -> None:
    kinds = {kind for kind, _ in MACHINES}
    assert {"munged", "slurmctld", "slurmd"} <= kinds
    brought = {toolchain.packages(kind, condition) for kind, condition in MACHINES}
    assert brought >= {("munge",), ("slurmctld",), ("slurmd",)}


@pytest.mark.parametrize(
    ("words", "limited"), [(["--no-install"], True), (["--no-install", "--within", "5"], True), (["--all"], False)]
)
def test_other_implementations_begin_within_the_check_s_time(
    words: list[str], limited: bool, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[str] = []

    def passes(stage: Stage, environment: Mapping[str, str]) -> bool:
        given.append(environment[check.UNTIL])
        return True

    monkeypatch.setattr(check, "passes", passes)
    monkeypatch.setattr("harness.cli.check.time.time", lambda: 1000.0)
    assert check.main(words) == Exit.OK
    minutes = 5 if "--within" in words else check.MINUTES
    assert set(given) == {str(1000.0 + 60 * minutes) if limited else ""}


def test_a_test_that_failed_is_tried_again_whatever_time_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Left out for lack of time it would count as passed."""
    stage = of_servers(tmp_path, {1})
    (tmp_path / "test_it.py").write_text(
        "import os, pytest\n"
        "def test_it():\n"
        f"    if os.environ['{check.UNTIL}'] and os.path.exists('ran'):\n"
        "        pytest.skip('no time')\n"
        "    open('ran', 'w').close()\n"
        "    raise AssertionError\n"
    )
    monkeypatch.setattr(check, "stages", lambda **_: (stage,))
    monkeypatch.setattr(check, "lacking", lambda _: {})
    assert check.main(["--no-install"]) == Exit.FAILED
    assert capfd.readouterr().err.endswith("tfb check: failed: of servers\n")


def test_the_variants_of_a_folder_are_verified_one_after_another_by_one_process() -> None:
    folders = {one.name: one.folder.name for one in KNOWN}
    groups = [group(f"test_implementations.py::test_it[{parameters.id}]") for parameters in OTHERS]
    assert groups == [folders[str(parameters.values[0])] for parameters in OTHERS]
    assert [name for name, _ in itertools.groupby(groups)] == list(dict.fromkeys(groups))
    sizes = [len(list(variants)) for _, variants in itertools.groupby(groups)]
    assert sizes == sorted(sizes, reverse=True)
    assert len(sizes) > 10
