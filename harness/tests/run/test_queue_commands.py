"""The whole command line of GNU parallel and of sbatch, what is asked of a site, and how a queue is carried out."""

import shutil
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from harness.plan.lab import Lab, MachineSet
from harness.run import slurm, spread
from harness.run.slurm import Array, Site

from harness.errors import EnvironmentLacksError, UsageError
from harness.host import process
from harness.paths import REPOSITORY
from harness.tests.run.test_slurm import units
from harness.tests.run.test_spread import HERE, THERE, queue

START = ["parallel", "--will-cite", "--plus", "--line-buffer", "--tagstring", "{1}", "--joblog", "q/joblog"]
LIMIT = "4000"  # four times the hundred seconds of a unit, and an hour for builds


def test_here_every_word_of_parallel_is_in_its_place(tmp_path: Path) -> None:
    of = queue(HERE, "local")
    words = [*START, "--retries", "3", "--timeout", LIMIT]
    ends = ["--jobs", "2", f"{REPOSITORY}/tfb unit q/queue.json {{1}} --slot {{%}}", ":::", "0001", "0002", "0003"]
    assert spread.parallel(of, tmp_path / "q", of.units, again=False) == [*words, *ends]
    assert spread.parallel(of, tmp_path / "q", of.units, again=True) == [*words, "--resume-failed", *ends]


def test_over_ssh_every_word_of_parallel_is_in_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TFB_SSH_CONFIG", raising=False)
    of = queue(THERE, "parallel")
    ssh = "ssh -o BatchMode=yes -o ConnectTimeout=10 -o ServerAliveInterval=5 -o ServerAliveCountMax=3"

    def words(ssh: str) -> list[str]:
        return [
            *START, "--retries", "3", "--timeout", LIMIT, "--sshlogin", "1/c1.a,1/c1.b", "--ssh", ssh,
            "--workdir", "bench/tfb/results", "--basefile", "q/queue.json", "--return", "q/units/{1}",
            "../tfb unit q/queue.json {1} --login {sshlogin}", ":::", "0001", "0002", "0003",
        ]  # fmt: skip

    assert spread.parallel(of, tmp_path / "q", of.units, again=False) == words(ssh)
    monkeypatch.setenv("TFB_SSH_CONFIG", "/my/config")
    assert spread.parallel(of, tmp_path / "q", of.units, again=False) == words(f"{ssh} -F /my/config")


def test_a_unit_hangs_after_four_times_the_longest_and_an_hour() -> None:
    longest = (units(1)[0], units(2)[0].model_copy(update={"seconds": 250.0}))
    assert spread._limit(longest) == 4600.0
    assert spread._limit(()) == 3600.0


def test_sets_that_an_engine_does_not_reach_are_named() -> None:
    mixed = Lab(sets=(MachineSet(name="a"), MachineSet(name="b", login="c1.b"), MachineSet(name="c")))
    assert [each.name for each in spread.here(mixed)] == ["a", "c"]
    for ask, message in (
        (lambda: spread.here(THERE), "--engine local runs the sets without a login, and the lab has none"),
        (lambda: spread.over_ssh(mixed), "--engine parallel reaches each set over ssh, and a, c has no login"),
        (
            lambda: slurm.nodes(mixed),
            "--engine slurm: each set of the lab names its node as login, and a, c does not",
        ),
    ):
        with pytest.raises(UsageError) as refused:
            ask()
        assert str(refused.value) == message
    assert spread.over_ssh(THERE) == THERE.sets
    assert slurm.nodes(THERE) == {"c1.a", "c1.b"}


@pytest.mark.parametrize(
    ("engine", "program", "packages"),
    [("slurm", "sbatch", "slurm-wlm"), ("parallel", "parallel", "parallel rsync"), ("local", "parallel", "parallel")],
)
def test_an_engine_that_is_not_there_is_named_with_its_packages(
    monkeypatch: pytest.MonkeyPatch, engine: str, program: str, packages: str
) -> None:
    monkeypatch.setattr(shutil, "which", {program: "/usr/bin/x"}.get)
    spread.require(engine)
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(EnvironmentLacksError) as lacking:
        spread.require(engine)
    assert str(lacking.value) == f"{program} is not on this machine: apt-get install {packages}"


def carried_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: str, *done: str, again: bool = False, log: bool = False
) -> tuple[int, list[Any], list[str]]:
    """The status, what was run, and what was said, of a queue whose units ``done`` are there."""
    folder = tmp_path / "q"
    for unit in done:
        (folder / "units" / unit).mkdir(parents=True, exist_ok=True)
        (folder / "units" / unit / "done").touch()
    (folder / "units" / "0003").mkdir(parents=True, exist_ok=True)  # begun, and not done
    if log:
        (folder / "joblog").touch()
    ran: Any = []
    said: list[str] = []
    monkeypatch.setattr(shutil, "which", lambda _: "/x")
    monkeypatch.setattr(spread, "_run", lambda *words: ran.append(words) or 7)
    monkeypatch.setattr(spread, "_by_slurm", lambda *words: ran.append(words) or 5)
    of = queue(THERE if engine != "local" else HERE, engine)
    return spread.carry_out(of, folder, again=again, say=said.append), ran, said


def test_what_is_done_already_is_not_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    status, ran, said = carried_out(tmp_path, monkeypatch, "local", "0002")
    ((words, folder, more),) = ran
    assert (status, words[-2:], folder, more) == (7, ["0001", "0003"], tmp_path, {"PARALLEL_SHELL": "/bin/sh"})
    assert "--resume-failed" not in words
    assert len(said) == 1
    assert said[0].startswith("parallel --will-cite --plus")
    assert carried_out(tmp_path, monkeypatch, "local", "0001", "0003")[:2] == (0, [])


def test_a_queue_that_goes_on_gives_parallel_its_whole_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, ran, _ = carried_out(tmp_path / "1", monkeypatch, "local", "0002", again=True, log=True)
    assert ran[0][0][-4:] == [":::", "0001", "0002", "0003"]
    assert "--resume-failed" in ran[0][0]
    _, ran, _ = carried_out(tmp_path / "2", monkeypatch, "local", "0002", again=True)
    assert ran[0][0][-3:] == [":::", "0001", "0003"]
    _, ran, _ = carried_out(tmp_path / "3", monkeypatch, "local", "0002", log=True)
    assert ran[0][0][-3:] == [":::", "0001", "0003"]


def asked_by_ssh(monkeypatch: pytest.MonkeyPatch, statuses: Mapping[str, int | None]) -> list[Sequence[str]]:
    """The commands that ask each login, which end with a status, or not in time (None)."""
    asked: list[Sequence[str]] = []

    class Child:
        def __init__(self, words: Sequence[str], **_: Any) -> None:
            asked.append(words)
            self.login = words[-2]

        def wait(self, seconds: float) -> int | None:
            assert 0 < seconds <= spread.ANSWERS
            return statuses[self.login]

    monkeypatch.setattr(process, "Child", Child)
    monkeypatch.setattr(process, "running", nullcontext)
    monkeypatch.delenv("TFB_SSH_CONFIG", raising=False)
    return asked


@pytest.mark.parametrize("silent", [255, None])
def test_sets_that_do_not_answer_are_named_and_left_out(monkeypatch: pytest.MonkeyPatch, silent: int | None) -> None:
    said: list[str] = []
    asked = asked_by_ssh(monkeypatch, {"c1.a": silent, "c1.b": 0})
    assert spread.answering(THERE, said.append) == (THERE.sets[1],)
    assert asked == [(*spread.SSH, "c1.a", "true"), (*spread.SSH, "c1.b", "true")]
    assert said == ["set a: ssh c1.a does not answer; its units go to the others"]


def test_a_lab_that_does_not_answer_at_all_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    asked_by_ssh(monkeypatch, {"c1.a": 255, "c1.b": None})
    with pytest.raises(EnvironmentLacksError, match=r"none of the lab's sets answers over ssh \(c1\.a, c1\.b\)"):
        spread.answering(THERE, print)


def test_only_sets_that_answer_are_given_units(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked_by_ssh(monkeypatch, {"c1.a": 255, "c1.b": 0})
    _, ran, said = carried_out(tmp_path, monkeypatch, "parallel", "0002")
    words = ran[0][0]
    assert words[words.index("--sshlogin") + 1] == "1/c1.b"
    assert len(said) == 2


def test_slurm_is_given_what_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    status, ran, _ = carried_out(tmp_path, monkeypatch, "slurm", "0001")
    ((of, folder, left, say),) = ran
    assert (status, folder, [unit.id for unit in left]) == (5, tmp_path / "q", ["0002", "0003"])
    assert of.engine == "slurm"
    assert callable(say)


def test_an_engine_runs_in_the_folder_of_the_queues_until_it_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[Any] = []
    waits: list[float] = []
    ends = iter((None, None, 3))

    class Child:
        def __init__(self, words: Sequence[str], **how: Any) -> None:
            started.append((words, how))

        def wait(self, seconds: float) -> int | None:
            waits.append(seconds)
            return next(ends)

    monkeypatch.setattr(process, "Child", Child)
    monkeypatch.setattr(process, "running", nullcontext)
    monkeypatch.setenv("TFB_X", "kept")
    assert spread._run(["x", "y"], tmp_path, {"MORE": "1"}) == 3
    ((words, how),) = started
    assert (words, how["cwd"], how["stdout"], how["stderr"]) == (["x", "y"], tmp_path, 2, 2)
    assert (how["env"]["TFB_X"], how["env"]["MORE"]) == ("kept", "1")
    assert waits == [3600.0] * 3


def test_every_word_of_sbatch_is_in_its_place(tmp_path: Path) -> None:
    of = queue(THERE, "slurm")
    array = Array(first=2, units=units(2, 5))
    common = [
        "sbatch", "--parsable", "--wait", "--requeue", "--exclusive", "--nodes=1", "--open-mode=append",
        "--array=0,3%2", "--time=67", "--job-name=tfb-q", f"--chdir={tmp_path}", "--output=q/slurm-%A_%a.log",
    ]  # fmt: skip
    site = Site(nodes=("c1.b", "z", "c1.a", "spare"), array_size=9)
    assert slurm.sbatch(of, tmp_path / "q", array, site, seconds=4019.0) == [
        *common, "--partition=lab", "--exclude=spare,z",
    ]  # fmt: skip
    bare = of.model_copy(update={"lab": THERE.model_copy(update={"partition": None})})
    alone = Site(nodes=("c1.a", "c1.b"), array_size=9)
    assert slurm.sbatch(bare, tmp_path / "q", array, alone, seconds=4020.0) == [*common[:8], "--time=68", *common[9:]]


def asking(monkeypatch: pytest.MonkeyPatch, **answers: tuple[int, str]) -> list[Any]:
    asked: list[Any] = []

    def run(words: Sequence[str], *, seconds: float) -> SimpleNamespace:
        asked.append((tuple(words), seconds))
        status, stdout = answers[words[0]]
        return SimpleNamespace(status=status, stdout=stdout)

    monkeypatch.setattr(process, "run", run)
    return asked


CONFIG = "Configuration data\nFirstArraySize = 5\nMaxArraySize            = 301\nMaxArraySize = 7\n"
NODES = "c1.a lab\nc1.a other*\nc1.b lab\nhead other*\nodd\nc1.c lab*\n"


def test_a_site_tells_its_nodes_and_how_large_an_array_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = asking(monkeypatch, scontrol=(0, CONFIG), sinfo=(0, NODES))
    assert slurm.site(THERE) == Site(nodes=("c1.a", "c1.b", "c1.c"), array_size=301)
    assert asked == [
        (("scontrol", "show", "config"), 60.0),
        (("sinfo", "--noheader", "--Node", "--format=%N %P"), 60.0),
    ]
    asking(monkeypatch, scontrol=(0, "nothing"), sinfo=(0, NODES))
    assert slurm.site(THERE).array_size == 1001


def test_a_lab_without_a_partition_is_in_the_default_one(monkeypatch: pytest.MonkeyPatch) -> None:
    asking(monkeypatch, scontrol=(0, CONFIG), sinfo=(0, "c1.a lab*\nc1.b lab*\nx other\n"))
    assert slurm.site(THERE.model_copy(update={"partition": None})).nodes == ("c1.a", "c1.b")


@pytest.mark.parametrize(
    ("partition", "nodes", "message"),
    [
        ("lab", "x lab\nc1.b lab\ny lab\n", "partition 'lab' has no node c1.a (sinfo shows x, c1.b, y)"),
        ("lab", "c1.a other\n", "partition 'lab' has no node c1.a, c1.b (sinfo shows none)"),
        (None, "c1.a lab\nc1.b lab*\n", "the default partition has no node c1.a (sinfo shows c1.b)"),
    ],
)
def test_a_node_that_is_not_there_is_named(
    monkeypatch: pytest.MonkeyPatch, partition: str | None, nodes: str, message: str
) -> None:
    asking(monkeypatch, scontrol=(0, CONFIG), sinfo=(0, nodes))
    with pytest.raises(UsageError) as absent:
        slurm.site(THERE.model_copy(update={"partition": partition}))
    assert str(absent.value) == (
        f"--engine slurm: {message}; the lab's login is the node's name, partition its partition"
    )


@pytest.mark.parametrize(
    ("printed", "said"), [("", "nothing"), ("first\nslurm_load: Unable to contact\n", "slurm_load: Unable to contact")]
)
def test_a_controller_that_does_not_answer_is_told_with_its_last_line(
    monkeypatch: pytest.MonkeyPatch, printed: str, said: str
) -> None:
    asking(monkeypatch, scontrol=(1, printed))
    with pytest.raises(EnvironmentLacksError) as silent:
        slurm.site(THERE)
    assert str(silent.value) == f"scontrol show config: Slurm's controller does not answer: {said}"


def test_a_task_s_script_is_whole() -> None:
    of = queue(THERE, "slurm")
    script = slurm.script(of, "q/a queue.json")
    assert script.splitlines()[2] == (f'{REPOSITORY}/tfb unit \'q/a queue.json\' "$unit" --login "$SLURMD_NODENAME"')
    assert script.endswith('exit "$status"\n')


def test_what_is_taken_back_has_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Mapping[str, Any]] = []
    monkeypatch.setattr(process, "run", lambda _words, **how: seen.append(how))
    slurm.cancel(queue(THERE, "slurm"))
    assert seen == [{"seconds": 60.0}]
