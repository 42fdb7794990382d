"""Attack: the current folder or Python's environment variables provide modules or programs that tfb would run."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.host import spawn
from harness.paths import REPOSITORY
from harness.tests.scene import script

MODULES = (
    "secrets",
    "numbers",
    "random",
    "json",
    "typing",
    "logging",
    "psutil",
    "sitecustomize",
    "usercustomize",
    "runpy",
)
PROGRAMS = ("env", "sed", "dirname", "cmp", "python3", "id", "git", "sh", "apt-get", "true", "cp", "rm")


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """Return a folder with fake modules and programs that record when tfb uses them."""
    folder = tmp_path / "hostile"
    (folder / "harness").mkdir(parents=True)
    for name in (*MODULES, "harness/__init__", "harness/__main__", "harness/errors"):
        (folder / f"{name}.py").write_text(f"open({str(tmp_path / 'used')!r}, 'a').write('{name} ')\n")
    for name in PROGRAMS:
        script(folder / name, f"echo {name} >> {tmp_path}/used; exit 1")
    return folder


def environment(tmp_path: Path, **variables: str) -> dict[str, str]:
    found = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PIP_"))}
    venv = str(Path(sys.executable).parent.parent)
    return {**found, "TFB_VENV": venv, "TFB_STATE": str(tmp_path / "state"), "HOME": str(tmp_path), **variables}


def run(command: list[str], cwd: Path, env: dict[str, str]) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, timeout=120, check=False)


SETTINGS: dict[str, dict[str, str]] = {
    "current-folder": {},
    "python-path": {"PYTHONPATH": "{hostile}"},
    "relative-python-path": {"PYTHONPATH": "."},
    "empty-entry": {"PYTHONPATH": ":/usr/lib"},
    "python-home": {"PYTHONHOME": "{hostile}"},
    "user-base": {"PYTHONUSERBASE": "{hostile}"},
    "warnings": {"PYTHONWARNINGS": "error::numbers.Warning"},
    "breakpoint": {"PYTHONBREAKPOINT": "numbers.open"},
    "inspect": {"PYTHONINSPECT": "1"},
    "startup": {"PYTHONSTARTUP": "numbers.py"},
    "pip": {"PIP_USER": "1", "PIP_TARGET": "{hostile}", "PIP_REQUIRE_VIRTUALENV": "1", "PIP_PREFIX": "{hostile}"},
}


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize(
    "words", [("--version",), ("list", "--json"), ("doctor", "--json")], ids=lambda words: words[0]
)
def test_the_launcher_uses_nothing_of_the_current_folder(
    setting: str, words: tuple[str, ...], hostile: Path, tmp_path: Path
) -> None:
    more = {name: value.format(hostile=hostile) for name, value in SETTINGS[setting].items()}
    completed = run([str(REPOSITORY / "tfb"), *words], hostile, environment(tmp_path, **more))
    assert completed.returncode in (0, 3), completed.stderr
    assert "Traceback" not in completed.stderr
    assert not (tmp_path / "used").exists(), (tmp_path / "used").read_text()


@pytest.mark.parametrize("path", [".:{path}", ":{path}", "{path}:", "bin/..:{path}"])
def test_the_launcher_ignores_programs_beside_it(path: str, hostile: Path, tmp_path: Path) -> None:
    env = environment(tmp_path, PATH=path.format(path=os.environ["PATH"]))
    completed = run([str(REPOSITORY / "tfb"), "list", "--json"], hostile, env)
    assert completed.returncode == 0, completed.stderr
    assert not (tmp_path / "used").exists(), (tmp_path / "used").read_text()


@pytest.mark.parametrize("flags", [["-m", "harness"], ["-c", "from harness.__main__ import script; script()"]])
def test_installed_tfb_ignores_the_current_folder(flags: list[str], hostile: Path, tmp_path: Path) -> None:
    """PYTHONPATH puts tfb's folder first on the search path, as if tfb were installed."""
    (hostile / "harness" / "__init__.py").unlink()
    for name in ("sitecustomize", "usercustomize", "runpy"):  # Python imports these modules before tfb runs
        (hostile / f"{name}.py").unlink()
    for path in (str(REPOSITORY), f"{REPOSITORY}:", f"{REPOSITORY}:."):
        env = environment(tmp_path, PYTHONPATH=path)
        safe = ["-P"] if flags[0] == "-c" else []
        completed = run([sys.executable, *safe, *flags, "list", "--json"], hostile, env)
        used = (tmp_path / "used").read_text() if (tmp_path / "used").exists() else ""
        assert "typing" not in used, (path, used)
        assert "psutil" not in used, (path, used)
        (tmp_path / "used").unlink(missing_ok=True)
        assert "Traceback" not in completed.stderr or flags[0] == "-m", completed.stderr


def test_the_guardian_imports_nothing_of_the_current_folder(hostile: Path, tmp_path: Path) -> None:
    """The guardian must ignore the folder both while tfb runs and while it cleans up after tfb was killed."""
    code = (
        "import os, sys\nfrom harness.host import process\n"
        "os.chdir(sys.argv[1])\nos.environ['PYTHONPATH'] = sys.argv[1]\n"
        "process.Child(['sleep', '600'])\nos.kill(os.getpid(), 9)"
    )
    env = environment(tmp_path, PYTHONPATH=str(REPOSITORY), TMPDIR=str(tmp_path))
    assert run([sys.executable, "-P", "-c", code, str(hostile)], tmp_path, env).returncode == -9
    for _ in range(200):
        if not list(tmp_path.glob("tfb-scratch-*")):
            break
        subprocess.run(["sleep", "0.05"], check=True)
    assert not list(tmp_path.glob("tfb-scratch-*"))
    assert not (tmp_path / "used").exists(), (tmp_path / "used").read_text()
    assert spawn.IMPORT_FOLDER == REPOSITORY


def test_pip_settings_cannot_change_the_installation(tmp_path: Path) -> None:
    """tfb keeps the user's package indexes and certificates, but ignores settings for packages and target folders."""
    record = tmp_path / "seen"
    fake = script(
        tmp_path / "python3",
        f'case "$*" in *pip*install*) env > {record}; exit 1;; *venv*) for last; do :; done; mkdir -p "$last/bin"; '
        f'cp {tmp_path}/python3 "$last/bin/python";; *execv*) shift 2; exec {tmp_path}/python3 "$@";; esac',
    )
    expected = {"PIP_INDEX_URL": "https://pypi.example", "PIP_CERT": "/etc/cert", "PIP_CONFIG_FILE": "/etc/pip.conf"}
    dropped = (
        "TARGET",
        "PREFIX",
        "ROOT",
        "REQUIREMENT",
        "CONSTRAINT",
        "REQUIRE_VIRTUALENV",
        "PYTHON",
        "NO_DEPS",
        "DRY_RUN",
    )
    more = {f"PIP_{name}": "1" for name in (*dropped, "USER")}
    env = environment(tmp_path, TFB_VENV=str(tmp_path / "venv"), TFB_PYTHON=str(fake), **expected, **more)
    env["PATH"] = f"{tmp_path}:{os.environ['PATH']}"
    run([str(REPOSITORY / "tfb"), "--version"], tmp_path, {**env, "PYTHONPATH": "/x", "PYTHONHOME": "/x"})
    variables = dict(
        line.split("=", 1) for line in record.read_text().splitlines() if line.startswith(("PIP_", "PYTHON"))
    )
    assert variables.items() >= expected.items()
    assert variables["PIP_USER"] == "0"
    assert not {f"PIP_{name}" for name in dropped} & set(variables)
    assert variables["PYTHONSAFEPATH"] == "1"
    assert "PYTHONHOME" not in variables
    assert "PYTHONPATH" not in variables


def test_other_users_may_write_nothing_that_tfb_makes(tmp_path: Path) -> None:
    """tfb runs programs from its state folder, so other users must not be able to write there despite the umask."""
    code = (
        "import os; os.umask(0); from harness.host import environment; environment.secure_process(); "
        "from harness.records import safe_write; from pathlib import Path; "
        "safe_write.make_folder(Path('made').absolute()); safe_write.replace(Path('made/file').absolute(), b'')"
    )
    env = environment(tmp_path, PYTHONPATH=str(REPOSITORY))
    completed = run([sys.executable, "-P", "-c", code], tmp_path, env)
    assert completed.returncode == 0, completed.stderr
    for path in (tmp_path / "made", tmp_path / "made" / "file"):
        assert not path.stat().st_mode & 0o002


def test_the_launchers_environment_is_private(tmp_path: Path) -> None:
    fake = script(
        tmp_path / "python3",
        f'case "$*" in *venv*) for last; do :; done; mkdir -p "$last/bin"; cp {tmp_path}/python3 "$last/bin/python";; '
        f'*execv*) shift 2; exec {tmp_path}/python3 "$@";; esac',
    )
    env = environment(tmp_path, TFB_VENV=str(tmp_path / "venv"), TFB_PYTHON=str(fake))
    run(["sh", "-c", f'umask 0; exec "{REPOSITORY}/tfb" --version'], tmp_path, env)
    assert (tmp_path / "venv" / "bin").is_dir()
    assert not (tmp_path / "venv" / "bin").stat().st_mode & 0o002
