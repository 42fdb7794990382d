"""A side's build and server see the environment that the service would see in the user's shell."""

import os
import resource
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from harness.errors import ConfigError, StartError, TfbError
from harness.extras.gate import enclosures, isolation
from harness.extras.gate.build_caches import BuildCaches
from harness.extras.gate.cli import prepare
from harness.extras.gate.collisions import explain_failure
from harness.extras.gate.isolation import IsolatedRuntime, Isolation, TamperedError
from harness.extras.gate.paired import BASE, COPY, HEAD
from harness.host import accounts, machine
from harness.host.process import Account
from harness.plan import service
from harness.runtime import NO_DATABASE
from harness.tests.doubles.repositories import git, let_others_enter, repository

IS_ROOT = os.geteuid() == 0
# A server that runs the shell command in the environment variable CHECK before it listens.
SERVER = """
import os, subprocess
from http.server import BaseHTTPRequestHandler, HTTPServer

done = subprocess.run(["sh", "-c", os.environ.get("CHECK", "true")], capture_output=True, text=True)
body = (done.stdout + done.stderr).encode()

class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass

print(body.decode(), flush=True)
if done.returncode:
    raise SystemExit(done.returncode)
HTTPServer(("127.0.0.1", int(os.environ["PORT"])), Handler).serve_forever()
"""
TOML = """
[service]
build = '''{build}'''
start = '''{python} -u server.py'''
env = {{ CHECK = '''{check}'''{env} }}
{more}
[[request]]
name = "a"
path = "/"
"""


class ObservedService:
    """A service with a build command, and with a shell command ("check") that its server runs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        let_others_enter(folder)

    def tried(
        self, check: str = "true", build: str = "true", env: str = "", keys: str = "", *, separate: bool = IS_ROOT
    ) -> dict[str, str]:
        """Build and start all sides one after another. Return the output of each side's check."""
        text = TOML.format(build=build, check=check, python=sys.executable, env=env, more=keys)
        shop = repository(self.folder / "shop", tfb__toml=text, server__py=SERVER, **{"sub/file": ""})
        git(shop, "tag", "v1.2")
        return self.measured(shop, "main", separate=separate)

    def measured(self, shop: Path, base: str, *, separate: bool = IS_ROOT) -> dict[str, str]:
        place = self.folder / "place"
        place.mkdir(mode=0o755)
        prepared = prepare(shop, base, None, place, seed=1)
        prepared.isolation.prepare(separate=separate)
        runtime = IsolatedRuntime(
            work=self.folder,
            contained_sides={},
            services=prepared.services,
            isolation=prepared.isolation,
            own_scripts=True,
        )
        for each in prepared.implementations:
            record = runtime.build(each, self.folder / "logs" / each.name / "build")
            if record.status != "ok":
                raise StartError(record.reason)
        outputs = {}
        for each in prepared.implementations:
            log = self.folder / "logs" / each.name / "log"
            with runtime.start(each, NO_DATABASE, log, ready_path="/"):
                outputs[each.name] = log.read_text().strip()
        if separate:  # without separate accounts, head may write these files
            prepared.isolation.require_unchanged()
        return outputs


@pytest.fixture(autouse=True)
def _few_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skip the fingerprints of this machine's programs, which take seconds."""
    monkeypatch.setattr(isolation, "shared_programs", dict)


@pytest.fixture
def shop(tmp_path: Path) -> ObservedService:
    return ObservedService(tmp_path)


separations = pytest.mark.parametrize(
    "separate",
    [False, pytest.param(True, marks=pytest.mark.skipif(not IS_ROOT, reason="only root can become other accounts"))],
)
FILES = {
    "SQLite database": ("echo rows > shop.db", "echo more >> shop.db && cat shop.db"),
    "folder of uploads": ("mkdir uploads", "echo x > uploads/1.json && cat uploads/1.json"),
    "cache of compiled pages": ("mkdir -p .next/cache", "echo x > .next/cache/page.js && cat .next/cache/page.js"),
    "cache in the home": ("mkdir -p ~/.cache/models && echo x > ~/.cache/models/m", "cat ~/.cache/models/m"),
    "setting in the home": ("echo x > ~/.shoprc", "cat ~/.shoprc && echo y > ~/.shoprc"),
    "temporary file": ("echo x > ${TMPDIR:-/tmp}/shop-1", "cat ${TMPDIR:-/tmp}/shop-1"),
    "file with private mode": ("umask 077; echo x > key", "cat key && echo y > key"),
}


@separations
def test_the_server_reads_and_writes_built_files(shop: ObservedService, *, separate: bool) -> None:
    build = "; ".join(f"({build})" for build, _ in FILES.values())
    check = "; ".join(f"({check}) > out 2>&1 || (echo {kind}; cat out)" for kind, (_, check) in FILES.items())
    assert shop.tried(check, build, separate=separate) == dict.fromkeys((BASE, COPY, HEAD), "")


@separations
def test_each_side_has_its_own_folders(shop: ObservedService, *, separate: bool) -> None:
    said = shop.tried("echo $HOME $TMPDIR", separate=separate)
    assert len(set(said.values())) == len(said)
    assert all(len(set(words.split())) == 2 for words in said.values())


@pytest.mark.skipif(not IS_ROOT, reason="only root can become other accounts")
def test_build_and_server_share_an_account(shop: ObservedService) -> None:
    said = shop.tried("id -u; cat built-as", build="id -u > built-as")
    uids = {side: words.split() for side, words in said.items()}
    assert all(built == served != "0" for built, served in uids.values())
    assert len({built for built, _ in uids.values()}) == 3


@pytest.mark.skipif(not IS_ROOT, reason="only root can become other accounts")
def test_temporary_folders_are_private_where_mounts_work(shop: ObservedService) -> None:
    mount = ["unshare", "--mount", "--ipc", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    if subprocess.run(mount, check=False, capture_output=True, timeout=60).returncode:
        pytest.skip("this machine mounts nothing")
    name = f"/tmp/tfb-{os.getpid()}-private"  # noqa: S108 - a new file
    said = shop.tried(f"test ! -e {name} && echo x > {name} && cat {name}; echo $CARGO_HOME")
    assert set(said.values()) == {"x\n/tmp/tfb-home/.cargo"}
    assert not Path(name).exists()


@pytest.mark.skipif(not IS_ROOT, reason="only root can become other accounts")
def test_sides_without_mounts_have_own_cargo_homes(shop: ObservedService, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise TfbError("mount: operation not permitted")

    monkeypatch.setattr("harness.host.process.run", refuse)
    monkeypatch.setenv("CARGO_HOME", "/opt/cargo")
    own = {side: Account(name=side, uid=54321, gid=54321) for side in (BASE, HEAD)}
    monkeypatch.setattr(isolation, "_own_account", lambda: own[HEAD])
    side = Isolation(roots={each: shop.folder / each for each in own}, homes=shop.folder / "place/homes")
    for root in side.roots.values():
        root.mkdir()
    side.prepare(separate=True)
    assert [side.environment(each)["CARGO_HOME"] for each in own] == [f"{side.homes / each}/.cargo" for each in own]
    assert [note for note in side.notes if "mount: operation not permitted" in note and "TMPDIR" in note]


@pytest.mark.parametrize("home_exists", [True, False])
def test_homes_link_settings_from_cargo_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, home_exists: bool
) -> None:
    for place, name in (("cargo", "config.toml"), ("cargo", "registry"), ("user/.cargo", "config"), ("user", ".rc")):
        (tmp_path / place).mkdir(parents=True, exist_ok=True)
        (tmp_path / place / name).touch()
    monkeypatch.setenv("HOME", str(tmp_path / ("user" if home_exists else "missing")))
    homes: dict[str, Path] = {}
    for variable in (str(tmp_path / "cargo"), ""):
        monkeypatch.setenv("CARGO_HOME", variable)
        side = Isolation(roots={HEAD: tmp_path / "head"}, homes=tmp_path / f"homes{len(homes)}")
        monkeypatch.setattr(enclosures, "enclosures", lambda *_: ({}, ""))
        side.prepare(separate=False)
        homes[variable] = side.homes / HEAD
    first, second = homes.values()
    assert [path.readlink() for path in (first / ".cargo").iterdir()] == [tmp_path / "cargo/config.toml"]
    linked = [path.readlink() for path in second.glob(".cargo/*")]
    assert linked == ([tmp_path / "user/.cargo/config"] if home_exists else [])
    assert (first / ".rc").is_symlink() is home_exists


@pytest.mark.skipif(not IS_ROOT, reason="only root can give files to other accounts")
def test_a_failed_copy_leaves_homes_to_their_owners(tmp_path: Path) -> None:
    roots = {side: tmp_path / side for side in (BASE, HEAD)}
    homes = tmp_path / "homes"
    (repository := homes / BASE / ".m2/repository").mkdir(parents=True)
    (homes / HEAD).mkdir()
    (repository / "own").symlink_to(roots[BASE] / "own")  # prevents sharing
    (roots[BASE]).mkdir()
    services = {side: (service.Service(start="x"), root) for side, root in roots.items()}
    caches = BuildCaches(services=services, roots=roots, origin=tmp_path)
    owners = {HEAD: Account(name="head", uid=54321, gid=54321)}
    Isolation(roots=roots, homes=homes, owners=owners, caches=caches).keep_caches()
    assert not (homes / HEAD / ".m2/repository").exists()
    assert (homes / HEAD / ".m2").stat().st_uid == 54321


def test_changed_programs_are_found_without_separation(tmp_path: Path) -> None:
    program = tmp_path / "bin/python3"
    program.parent.mkdir()
    program.touch()
    side = Isolation(
        roots={BASE: tmp_path}, homes=tmp_path, before={BASE: {}}, shared_programs={str(program): (0, 0, 0)}
    )
    with pytest.raises(TamperedError, match=f"changed {program} while the sides were measured"):
        side.require_unchanged()
    side.owners = {side_name: Account(name="other", uid=1, gid=1) for side_name in (BASE, HEAD)}
    side.require_unchanged()  # separate accounts cannot change the program


def test_env_reaches_both_and_build_env_one(shop: ObservedService) -> None:
    output = shop.tried(
        "echo $MODE $ONLY; cat built",
        build="echo $MODE $ONLY > built",
        env=', MODE = "production"',
        keys='[service.build_env]\nMODE = "build"\nONLY = "1"',
    )
    assert set(output.values()) == {"production\nbuild 1"}


def test_variables_of_the_user_are_not_replaced(shop: ObservedService) -> None:
    names = ("HOST", "DBHOST", "DBPORT", "DBPASS", "HOME", "TMPDIR", "LANG")
    own = "".join(f', {name} = "/own/{name}"' for name in names)
    said = shop.tried("; ".join(f"echo ${name}" for name in names), env=own)
    assert set(said.values()) == {"\n".join(f"/own/{name}" for name in names)}


def test_a_service_without_database_gets_no_variables(shop: ObservedService) -> None:
    said = shop.tried("env | grep -E '^(DB|HOST)' || echo none")
    assert set(said.values()) == {"none"}


def test_variables_of_tfb_reach_no_side(shop: ObservedService) -> None:
    assert "OPENBLAS_NUM_THREADS" in os.environ
    listed = "env | cut -d= -f1 | grep -E '^(PYTHON|OPENBLAS|TFB_STATE|TFB_VENV|VIRTUAL_ENV)' | tr '\\n' ' '; echo end"
    said = shop.tried(f"{listed}; cat built", build=f"({listed}) > built")
    assert {tuple(words.split()) for words in said.values()} == {("end", "end")}


def test_passed_variables_have_the_value_of_the_caller(shop: ObservedService, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TFB_PASS_ENV", "PYTHONPATH, OPENBLAS_NUM_THREADS, SHOP_MODE")
    for name, value in (("PYTHONPATH", "/tfb"), ("TFB_CALLER_PYTHONPATH", "/caller"), ("SHOP_MODE", "slow")):
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("TFB_CALLER_OPENBLAS_NUM_THREADS", "")
    said = shop.tried("echo $PYTHONPATH ${OPENBLAS_NUM_THREADS-unset} $SHOP_MODE")
    assert set(said.values()) == {"/caller unset slow"}


def test_the_open_file_limit_is_the_callers(shop: ObservedService) -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    code = "import resource, sys; print(resource.getrlimit(resource.RLIMIT_NOFILE)[0])"
    try:
        machine.raise_open_file_limit()
        output = shop.tried(f"{sys.executable} -c '{code}'; cat built", build=f"{sys.executable} -c '{code}' > built")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    if IS_ROOT or not accounts.account_obstacle():
        assert {tuple(words.split()) for words in output.values()} == {(str(machine.CALLER_OPEN_FILES[0]),) * 2}


GIT_COMMANDS = {
    "describe": ("git describe --tags", "v1.2"),
    "describe as setuptools_scm does": ("git describe --dirty --tags --long --match '*[0-9]*'", "v1.2-0-g"),
    "revision": ("git rev-parse --verify HEAD | cut -c 1-4 | wc -c", "5"),
    "files": ("git ls-files --full-name .. | sort | tr '\\n' ' '; echo", "server.py sub/file tfb.toml"),
    "content": ("git show HEAD:tfb.toml | head -2 | tail -1", "[service]"),
    "hooks as husky sets them": ("git config core.hooksPath .husky && git config core.hooksPath", ".husky"),
    "log": ("git log -1 --format=%ae", "a@example.org"),
}


@separations
def test_builds_use_git(shop: ObservedService, *, separate: bool) -> None:
    build = "; ".join(f"({asked}) >> ../built" for asked, _ in GIT_COMMANDS.values())
    said = shop.tried("cat built", build=f"cd sub && {build}", separate=separate)
    for words in said.values():
        assert all(map(str.startswith, words.splitlines(), [expected for _, expected in GIT_COMMANDS.values()])), said


def test_history_and_tags_before_the_commit_are_known(tmp_path: Path) -> None:
    top = repository(tmp_path / "shop", a="1")
    git(top, "tag", "-a", "v3", "-m", "release")
    for number in range(3):
        (top / "a").write_text(str(number))
        git(top, "commit", "-q", "-am", f"change {number}")
    git(top, "tag", "after")
    git(top, "commit", "-q", "--allow-empty", "-m", "unmeasured")
    (tmp_path / "place").mkdir()
    prepare(top, "after~1", None, tmp_path / "place", seed=1)
    base = tmp_path / "place" / "base"
    assert git(base, "describe").startswith("v3-2-g")
    assert git(base, "tag") == "v3"
    assert git(base, "rev-list", "--count", "HEAD") == "3"
    assert git(base, "status", "--porcelain") == ""
    assert git(tmp_path / "place" / "base-copy", "status", "--porcelain") == ""


def test_shallow_clones_have_a_commit(tmp_path: Path) -> None:
    top = repository(tmp_path / "shop", a="1")
    for number in range(3):
        git(top, "commit", "-q", "--allow-empty", "-m", f"change {number}")
    git(tmp_path, "clone", "-q", "--depth", "2", f"file://{top}", "shallow")
    (tmp_path / "place").mkdir()
    prepare(tmp_path / "shallow", "HEAD", None, tmp_path / "place", seed=1)
    assert git(tmp_path / "place" / "base", "log", "--format=%s").splitlines() == ["change 2", "change 1"]


def test_the_git_folder_has_no_settings(tmp_path: Path) -> None:
    top = repository(tmp_path / "shop")
    git(top, "remote", "add", "origin", "https://user:secret@example.org/shop")
    git(top, "config", "http.extraheader", "AUTHORIZATION: basic secret")
    (top / ".git" / "hooks" / "post-checkout").write_text("#!/bin/sh\ntouch ran\n")
    (tmp_path / "place").mkdir()
    prepare(top, "HEAD", None, tmp_path / "place", seed=1)
    for side in ("base", "head"):
        folder = tmp_path / "place" / side / ".git"
        assert "secret" not in (folder / "config").read_text()
        assert not (folder / "hooks").exists()
        assert git(folder.parent, "remote") == ""


def test_a_folder_without_git_needs_none(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "tfb.toml").write_text(TOML.format(build="true", check="true", python="x", env="", more=""))
    (tmp_path / "place").mkdir()
    made = prepare(tmp_path / "a", f"dir:{tmp_path / 'a'}", f"dir:{tmp_path / 'a'}", tmp_path / "place", seed=1)
    assert not (tmp_path / "place" / "base" / ".git").exists()
    assert made.notes == ()


@pytest.mark.parametrize(
    ("build", "check", "expected"),
    [
        ("echo x > /etc/shop-tfb-test", "true", ["/etc/shop-tfb-test", "belongs to root", "service.env"]),
        ("true", "mkdir /var/lib/shop-tfb-test", ["/var/lib/shop-tfb-test", "belongs to root"]),
        ("printf '#!/bin/sh' > run.sh; ./run.sh", "true", ["run.sh is not executable", "chmod +x"]),
        ("true", "printf '#!/bin/sh' > run.sh; ./run.sh", ["run.sh is not executable"]),
    ],
)
@pytest.mark.skipif(not IS_ROOT, reason="names accounts of root's sides")
def test_denied_access_names_path_and_account(
    build: str, check: str, expected: list[str], shop: ObservedService
) -> None:
    with pytest.raises(TfbError) as caught:
        shop.tried(check, build, separate=True)
    (cause,) = [line for line in str(caught.value).splitlines() if line.startswith("cause:")]
    assert all(word in cause for word in expected), cause


def test_missing_repository_is_named(tmp_path: Path) -> None:
    for line in ("fatal: not a git repository (or any of the parent directories): .git", ".git can't be found"):
        cause = explain_failure(f"step 1\n{line}\n", tmp_path, "uid 1")
        assert "has no .git folder" in cause
        assert "--base main" in cause
    assert explain_failure("AssertionError: 3", tmp_path, "uid 1") == ""


@pytest.mark.skipif(not IS_ROOT, reason="only root may mount")
@pytest.mark.parametrize("line", ["sh: 1: ./run.sh: Permission denied", "env: './run.sh': Permission denied"])
def test_a_file_system_without_programs_is_named(line: str, tmp_path: Path) -> None:
    (tmp_path / "run.sh").touch(mode=0o755)
    script = (
        "import sys; from pathlib import Path; from harness.extras.gate.collisions import explain_failure\n"
        f"print(explain_failure({line!r}, Path(sys.argv[1]), 'uid 1'))"
    )
    mount = f'mount --bind "$1" "$1" && mount -o remount,bind,noexec "$1" && exec {sys.executable} -c "$2" "$1"'
    completed = subprocess.run(
        ["unshare", "--mount", "sh", "-c", mount, "sh", str(tmp_path), script],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    if completed.returncode:
        pytest.skip(f"this machine mounts nothing: {completed.stderr[-200:]}")
    assert "mounted with noexec" in completed.stdout
    assert "TMPDIR" in completed.stdout


def test_build_env_without_build_is_refused(tmp_path: Path) -> None:
    values: Mapping[str, object] = {"start": "x", "build_env": {"A": "1"}}
    with pytest.raises(ValueError, match="build_env requires build"):
        service.Service.model_validate(values)
    text = '[service]\nstart = "x"\nbuild_env = { A = "1" }\n[[request]]\nname = "a"\npath = "/"\n'
    (tmp_path / "tfb.toml").write_text(text)
    with pytest.raises(ConfigError, match="build_env requires build"):
        service.read_service(tmp_path)
