"""Attack: a pull request takes over the CI workflow or the action by file names, links or unpinned programs."""

import os
import re
import shutil
import subprocess
import textwrap
from pathlib import Path

import pytest

from harness.cli import scans
from harness.paths import REPOSITORY
from harness.tests.doubles.repositories import git

WORKFLOW = REPOSITORY / ".github" / "workflows" / "pull-request.yml"
ACTION = REPOSITORY / "action.yml"
FILES = pytest.mark.parametrize("file", [*sorted(WORKFLOW.parent.glob("*.yml")), ACTION], ids=lambda path: path.name)
TAKE = "The base's harness with the pull request's implementations"
CONFIG = "frameworks/{}/benchmark_config.json"


def scripts(file: Path) -> dict[str, str]:
    """Return the shell scripts of a workflow by step name."""
    text = file.read_text(encoding="utf-8")
    found = re.findall(r"- name: (.+)\n(?:(?! *- ).*\n)*?( +)run: \|\n((?:\2  .*\n|\n)+)", text)
    return {name: textwrap.dedent(script) for name, _, script in found}


@FILES
def test_every_action_is_pinned_by_commit(file: Path) -> None:
    for line in file.read_text(encoding="utf-8").splitlines():
        if "uses:" in line:
            assert re.search(r"uses: [\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$", line), line


@FILES
def test_no_expression_stands_in_a_script(file: Path) -> None:
    assert scripts(file)
    for script in scripts(file).values():
        assert "${{" not in script


@FILES
def test_no_failure_of_git_is_hidden(file: Path) -> None:
    for script in scripts(file).values():
        for line in script.splitlines():
            assert not (re.search(r"\bgit\b", line) and re.search(r"\|\|\s*(true|:)|2>\s*/dev/null|;\s*true", line)), (
                line
            )


def test_jobs_have_the_least_permissions() -> None:
    text = WORKFLOW.read_text(encoding="utf-8")
    assert re.search(r"^permissions: \{\}$", text, re.MULTILINE)
    assert "pull_request_target" not in text
    measuring, commenting = text.split("\n  comment:")
    assert "write" not in re.findall(r"permissions:\n((?: {6}.*\n)+)", measuring)[0]
    assert "github.token" not in measuring
    assert "persist-credentials: false" in measuring
    assert "checkout" not in commenting
    assert "./tfb" not in commenting


def test_the_action_installs_only_locked_packages() -> None:
    install = scripts(ACTION)["install"]
    assert install.count('pip" install') == 2
    assert "--require-hashes" in install
    assert "--no-deps --no-build-isolation" in install
    for name in re.findall(r"requirements[\w-]*\.lock", install):
        text = (REPOSITORY / name).read_text(encoding="utf-8")
        packages = re.findall(r"^[\w.-]+(?:\[.*\])?==\S+.*\\\n    --hash=sha256:", text, re.MULTILINE)
        assert len(packages) == len(re.findall(r"^[a-zA-Z]", text, re.MULTILINE))
    needed = re.search(
        r'^requires = \["(hatchling==[\d.]+)"', (REPOSITORY / "pyproject.toml").read_text(), re.MULTILINE
    )
    assert needed
    assert needed[1] in (REPOSITORY / "requirements-build.lock").read_text()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Create a repository with two implementations, and check out the pull request's branch ``head``."""
    folder = tmp_path / "repository"
    for name in ("harness/judge.py", "tfb", CONFIG.format("Rust/axum"), CONFIG.format("Java/old")):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("base")
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "base")
    git(folder, "checkout", "-q", "-b", "head")
    (tmp_path / "temp").mkdir()
    return folder


def commit(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("head")
    git(folder, "add", "-A", "-f")
    git(folder, "commit", "-q", "-m", "head")


def step(folder: Path, name: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a step of the workflow as a CI runner would."""
    temp = folder.parent / "temp"
    environment = {
        **{key: os.environ[key] for key in ("PATH", "HOME")},
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "safe.directory",
        "GIT_CONFIG_VALUE_0": "*",
        "BASE": git(folder, "rev-parse", "main"),
        "HEAD": git(folder, "rev-parse", "head"),
        "RUNNER_TEMP": str(temp),
        "GITHUB_WORKSPACE": str(folder),
        "GITHUB_ENV": str(temp / "env"),
        "GITHUB_STEP_SUMMARY": str(temp / "summary"),
        **variables,
    }
    command = ["bash", "-euo", "pipefail", "-c", scripts(WORKFLOW)[name]]
    return subprocess.run(command, check=False, capture_output=True, text=True, cwd=folder, env=environment, timeout=60)


def chosen(folder: Path) -> tuple[list[str], list[str]]:
    """Run the steps that select folders. Return the folders to verify, and those of them that base has too."""
    first = step(folder, TAKE)
    assert first.returncode == 0, first.stderr
    parted = (folder.parent / "temp" / "env").read_text().strip().partition("=")[2]
    done = step(folder, "Which implementations", PARTED=parted)
    assert done.returncode == 0, done.stdout + done.stderr
    place = folder.parent / "temp" / "tfb"
    changed, known = (
        [name for name in (place / file).read_bytes().decode().split("\0") if name] for file in ("changed", "known")
    )
    return changed, known


def test_pull_requests_do_not_supply_the_harness(repository: Path) -> None:
    commit(repository, "harness/judge.py", "tfb", "harness/sitecustomize.py", CONFIG.format("Rust/axum"))
    assert chosen(repository) == (["Rust/axum"], ["Rust/axum"])
    assert (repository / "harness" / "judge.py").read_text() == "base"
    assert (repository / "tfb").read_text() == "base"
    assert not (repository / "harness" / "sitecustomize.py").exists()
    assert (repository / CONFIG.format("Rust/axum")).read_text() == "head"


def test_folders_with_any_name_are_verified(repository: Path) -> None:
    names = ["C++/drogon", "Größe/ä b", "Ruby/--help", "F#/$(touch x)", "Go/a'b\"c", "Lua/*"]
    commit(repository, *(CONFIG.format(name) for name in names if "--" not in name))
    changed, known = chosen(repository)
    assert sorted(changed) == sorted(name for name in names if "--" not in name)
    assert known == []
    assert not (repository / "x").exists()


@pytest.mark.parametrize("name", ["-rf/x", "Ruby/--yes", "Go/new\nline", "Go/tab\tx", "Go/\x1b[2J"])
def test_names_that_could_be_flags_are_refused(name: str, repository: Path) -> None:
    commit(repository, CONFIG.format(name))
    assert step(repository, TAKE).returncode == 0
    done = step(repository, "Which implementations", PARTED=git(repository, "rev-parse", "main"))
    assert done.returncode != 0
    assert done.stdout.count("\n") == 1
    assert name not in done.stdout


def test_removed_and_outer_files_are_no_implementations(repository: Path) -> None:
    git(repository, "rm", "-q", "-r", "frameworks/Java")
    commit(repository, "frameworks/README.md", "frameworks/Java/notes.md", "README.md")
    assert chosen(repository) == ([], [])


@pytest.mark.parametrize("link", ["frameworks", "frameworks/Rust", "frameworks/Rust/axum", CONFIG.format("Rust/axum")])
def test_links_in_the_place_of_folders_are_refused(link: str, repository: Path) -> None:
    commit(repository, "elsewhere/axum/benchmark_config.json", "elsewhere/Rust/axum/benchmark_config.json")
    path = repository / link
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    path.symlink_to("/etc" if link == "frameworks" else "../../elsewhere")
    commit(repository)
    first = step(repository, TAKE)
    second = step(repository, "Which implementations", PARTED=git(repository, "rev-parse", "main"))
    assert first.returncode != 0 or second.returncode != 0 or chosen(repository) == ([], [])


@pytest.mark.parametrize("name", [TAKE, "Which implementations"])
def test_a_commit_that_git_lacks_fails_the_check(name: str, repository: Path) -> None:
    commit(repository, CONFIG.format("Rust/axum"))
    done = step(repository, name, HEAD="0" * 40, PARTED="0" * 40)
    assert done.returncode != 0


TEXTS = ["```\n# x\n@everyone\n```", "`````", "plain", "a\n\n````\n<img src=x>"]


@pytest.mark.parametrize("text", TEXTS)
def test_the_comment_takes_the_verdict_for_text(text: str, tmp_path: Path) -> None:
    (tmp_path / "verdict").mkdir()
    (tmp_path / "verdict" / "verdict").write_text(f"{text}\n\x1b[2J\n")
    earlier = tmp_path / "earlier"
    earlier.write_text("")
    (tmp_path / "gh").write_text('#!/bin/sh\ncase "$*" in *--paginate*) cat earlier ;; *) echo "$@" > sent ;; esac\n')
    (tmp_path / "gh").chmod(0o755)
    script = next(script for script in re.split(r"- name: Comment\n", WORKFLOW.read_text())[1:])
    body = textwrap.dedent(re.findall(r"run: \|\n((?: {10}.*\n)+)", script)[0])
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "RUNNER_TEMP": str(tmp_path), "NUMBER": "7"}
    environment |= {"GH_REPO": "owner/repository"}
    completed = subprocess.run(["bash", "-euo", "pipefail", "-c", body], env=environment, check=False, timeout=30)
    assert completed.returncode == 0
    assert (tmp_path / "sent").read_text() == "pr comment 7 --body-file comment.md\n"
    earlier.write_text("41\n")
    subprocess.run(["bash", "-euo", "pipefail", "-c", body], env=environment, check=True, timeout=30)
    assert "PATCH repos/owner/repository/issues/comments/41 " in (tmp_path / "sent").read_text()
    lines = (tmp_path / "comment.md").read_text().split("\n")
    fence = lines[2].removesuffix("text")
    assert set(fence) == {"`"}
    assert len(fence) > max(map(len, re.findall("`*", text)))
    assert [number for number, line in enumerate(lines) if line.strip() == fence] == [len(lines) - 2]
    assert "\x1b" not in "".join(lines)


def test_linked_verdict_files_are_not_posted(tmp_path: Path) -> None:
    (tmp_path / "verdict").mkdir()
    (tmp_path / "verdict" / "verdict").symlink_to("/etc/passwd")
    script = next(script for script in re.split(r"- name: Comment\n", WORKFLOW.read_text())[1:])
    body = textwrap.dedent(re.findall(r"run: \|\n((?: {10}.*\n)+)", script)[0])
    environment = {"PATH": os.environ["PATH"], "RUNNER_TEMP": str(tmp_path), "NUMBER": "7"}
    completed = subprocess.run(["bash", "-euo", "pipefail", "-c", body], env=environment, check=False, timeout=30)
    assert completed.returncode != 0


def test_the_action_writes_its_verdict_through_no_link(tmp_path: Path) -> None:
    """The pull request puts links where the action writes its verdict. Servers print CI commands."""
    victim, shop, temp = tmp_path / "victim", tmp_path / "shop", tmp_path / "temp"
    for folder in (shop, temp / "tfb" / "bin"):
        folder.mkdir(parents=True)
    victim.write_text("mine")
    for name in ("tfb-verdict.md", "tfb-verdict.html"):
        (shop / name).symlink_to(victim)
    program = temp / "tfb" / "bin" / "tfb"
    program.write_text('#!/bin/sh\necho "::error::x" >&2\nenv > "$RUNNER_TEMP/seen"\nprintf "%s\\n" "$@"\nexit 4\n')
    program.chmod(0o755)
    inputs = {"BASE": "--output=F", "SERVICE": "-x", "THRESHOLD": "5", "TIME": "5m", "STRICT": "false"}
    secrets = {"GITHUB_TOKEN": "s3cret", "GITHUB_ENV": str(temp / "env"), "ACTIONS_RUNTIME_TOKEN": "s3cret"}
    environment = {"PATH": os.environ["PATH"], "RUNNER_TEMP": str(temp), **inputs, **secrets}
    environment["GITHUB_OUTPUT"] = str(temp / "output")
    command = ["sh", "-e", "-c", scripts(ACTION)["compare"]]
    completed = subprocess.run(
        command, check=False, capture_output=True, text=True, cwd=shop, env=environment, timeout=30
    )
    assert completed.returncode == 0, completed.stderr
    assert victim.read_text() == "mine"
    seen = (temp / "seen").read_text()
    assert "s3cret" not in seen
    assert "GITHUB_ENV" not in seen
    lines = completed.stdout.splitlines()
    token = lines[0].removeprefix("::stop-commands::")
    assert re.fullmatch(r"[0-9a-f]{32}", token)
    assert lines[-1] == f"::{token}::"
    assert "--base=--output=F" in lines
    outputs = dict(line.split("=", 1) for line in (temp / "output").read_text().splitlines())
    assert Path(outputs["comment"]).read_text().startswith("compare\n")


@pytest.mark.parametrize(
    ("checked_out", "asked", "event", "base"),
    [
        ("merge", "", "base", "HEAD^1"),
        ("pull", "", "base", "base"),
        ("merge", "v1", "base", "v1"),
        ("merge", "", "", "origin/main"),
    ],
)
def test_pull_requests_are_compared_with_the_merged_base(
    checked_out: str, asked: str, event: str, base: str, tmp_path: Path
) -> None:
    shop, temp = tmp_path / "shop", tmp_path / "temp"
    for folder in (shop, temp / "tfb" / "bin"):
        folder.mkdir(parents=True)
    git(shop, "init", "-q", "-b", "main")
    for name in ("first", "pull"):
        git(shop, "commit", "-q", "--allow-empty", "-m", name)
    git(shop, "branch", "pull")
    git(shop, "checkout", "-q", "-b", "merge", "HEAD^1")
    git(shop, "commit", "-q", "--allow-empty", "-m", "newer")
    git(shop, "merge", "-q", "--no-ff", "-m", "merge", "pull")
    merge = git(shop, "rev-parse", "HEAD")
    git(shop, "checkout", "-q", checked_out)
    program = temp / "tfb" / "bin" / "tfb"
    program.write_text("#!/bin/sh\nprintf '%s\\n' \"$@\"\n")
    program.chmod(0o755)
    inputs = {"BASE": asked, "SERVICE": ".", "THRESHOLD": "5", "TIME": "5m", "STRICT": "false"}
    event_values = {"PULL_REQUEST_BASE": event, "GITHUB_SHA": merge, "RUNNER_TEMP": str(temp)}
    completed = subprocess.run(
        ["sh", "-e", "-c", scripts(ACTION)["compare"]],
        check=True,
        capture_output=True,
        text=True,
        cwd=shop,
        env={**os.environ, **inputs, **event_values},
        timeout=30,
    )
    assert f"--base={base}" in completed.stdout.splitlines()


@FILES
def test_zizmor_finds_nothing(file: Path, tmp_path: Path) -> None:
    path = tmp_path / ".github" / "workflows" / file.name if file != ACTION else tmp_path / file.name
    path.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(file, path)
    command = [str(scans.BIN / "zizmor"), "--offline", "--no-progress", str(path)]
    completed = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    assert completed.returncode == 0, completed.stdout + completed.stderr
