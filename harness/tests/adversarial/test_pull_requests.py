"""Attack: a pull request manipulates the regression gate by tfb.toml, the build or background processes."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from harness.errors import Exit, UsageError
from harness.extras.gate.cli import PreparedComparison, prepare
from harness.extras.gate.declared import apply_declarations, without_added_requests
from harness.extras.gate.isolation import IsolatedRuntime, Isolation, TamperedError
from harness.extras.gate.judge import GateResult, RequestVerdict
from harness.extras.gate.paired import BASE, COPY, HEAD, SIDES
from harness.paths import REPOSITORY
from harness.plan.profile import ProcessLimits
from harness.records.loads import ClosedLoop
from harness.records.run_records import RunRecords
from harness.records.verdicts import Verdict
from harness.tests.adversarial.repositories import git, let_others_enter, repository
from harness.tests.doubles.runs import run_info

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give builds other accounts")
START = f"{sys.executable} -u server.py"
TOML = """
[service]
build = "{build}"
start = "{start}"
connections = {connections}
{more}
"""
REQUEST = """
[[request]]
name = "{name}"
path = "{path}"
weight = {weight}
[request.expect]
json = {{ ok = true }}
"""
SERVER = """
import hashlib, os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ROUNDS = 300

class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1

    def do_GET(self):
        text = b"x"
        for _ in range(ROUNDS if self.path.startswith("/slow") else 1):
            text = hashlib.sha256(text).digest()
        body = b'{"ok": true}'
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass

ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Handler).serve_forever()
"""


def toml(
    *requests: tuple[str, str],
    build: str = "true",
    start: str = START,
    connections: int = 4,
    more: str = "",
    weight: float = 1,
) -> str:
    asked = "".join(REQUEST.format(name=name, path=path, weight=weight) for name, path in requests)
    return TOML.format(build=build, start=start, connections=connections, more=more) + asked


BOTH = (("slow", "/slow"), ("quick", "/quick"))


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """Return a service whose base declares a slow and a fast request."""
    let_others_enter(tmp_path)
    return repository(tmp_path / "shop", tfb__toml=toml(*BOTH), server__py=SERVER)


def session(shop: Path, place: Path) -> PreparedComparison:
    place.mkdir()
    return prepare(shop, "main", None, place, seed=1)


def result(*verdicts: tuple[str, Verdict]) -> GateResult:
    found = tuple(RequestVerdict(request=name, verdict=verdict) for name, verdict in verdicts)
    return GateResult(
        base="main", head="head", threshold=0.05, verdict="faster", requests=found, minutes=1.0, started_at=0.0
    )


def compare(
    folder: Path, *words: str, shared_account: bool = False, seconds: int = 20
) -> tuple[int, dict[str, Any], str]:
    """Run the regression gate as a user would. With ``shared_account``, all sides run under the same account."""
    lines = "import sys; from harness.host import accounts; from harness import cli"
    lines += "; accounts.server_accounts = lambda port: None" if shared_account else ""
    command = [sys.executable, "-c", f"{lines}; sys.exit(cli.main(sys.argv[1:]))", "compare", *words]
    command += ["--time", f"{seconds}s", "--yes", "--quiet", "--json"]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    done = subprocess.run(
        command, check=False, capture_output=True, text=True, cwd=folder, env=environment, timeout=280
    )
    found = json.loads(done.stdout) if done.stdout.startswith("{") else {}
    return done.returncode, found, done.stdout + done.stderr


# ---- what is measured -----------------------------------------------------------------------------------------------


def test_connections_of_head_do_not_count(shop: Path, tmp_path: Path) -> None:
    (shop / "tfb.toml").write_text(toml(*BOTH, connections=1))
    made = session(shop, tmp_path / "place")
    assert made.declared.base.service.connections == 4
    assert made.declared.head.service.connections == 4
    assert any("service.connections from '4' to '1'" in note and "base's counts" in note for note in made.notes)


def test_weights_of_head_do_not_count(shop: Path, tmp_path: Path) -> None:
    (shop / "tfb.toml").write_text(toml(*BOTH, weight=0))
    made = session(shop, tmp_path / "place")
    assert {request.weight for request in made.declared.base.request} == {1.0}
    assert any("declares slow, quick differently" in note for note in made.notes)


def test_changed_requests_are_measured_as_base_declares(shop: Path, tmp_path: Path) -> None:
    (shop / "tfb.toml").write_text(toml(("slow", "/quick"), ("quick", "/quick")))
    made = session(shop, tmp_path / "place")
    targets = {each.name: each.requests["slow"].requests[0].target for each in made.implementations}
    assert targets == dict.fromkeys(SIDES, "/slow")
    assert any("declares slow differently" in note for note in made.notes)


def test_files_of_requests_are_those_of_base(tmp_path: Path) -> None:
    values = '[request.values]\nid = { csv = "ids.csv", column = "id" }\n[request.expect]\njson_schema = "s.json"\n'
    asked = (
        f'[service]\nstart = "x"\n[[request]]\nname = "a"\nmethod = "POST"\npath = "/{{id}}"\nbody_file = "b"\n{values}'
    )
    base = repository(tmp_path / "shop", tfb__toml=asked, ids__csv="id\n1\n", s__json='{"minimum": 1}', b="slow")
    for name, said in (("ids.csv", "id\n2\n"), ("s.json", "{}"), ("b", "quick")):
        (base / name).write_text(said)
    made = session(base, tmp_path / "place")
    for side in made.implementations:
        (prepared, *_) = side.requests["a"].requests
        assert (prepared.target, prepared.body, prepared.expect.json_schema) == ("/1", b"slow", {"minimum": 1})


def test_requests_new_in_head_are_verified_there(shop: Path, tmp_path: Path) -> None:
    (shop / "tfb.toml").write_text(toml(*BOTH, ("new", "/new")))
    made = session(shop, tmp_path / "place")
    assert {each.name: [*each.requests] for each in made.implementations} == {
        BASE: ["slow", "quick"],
        COPY: ["slow", "quick"],
        HEAD: ["slow", "quick", "new"],
    }
    assert any("not in base: new" in note for note in made.notes)
    records = RunRecords(
        info=run_info(
            SIDES, ProcessLimits(), loads=dict.fromkeys(("slow", "quick", "new"), (ClosedLoop(connections=4),))
        )
    )
    assert [*without_added_requests(records, made.declared).info.loads] == ["slow", "quick"]
    settled = apply_declarations(result(("slow", "same"), ("quick", "same")), records, made.declared)
    assert settled.requests[-1].verdict == "cannot tell"  # the records do not verify the new request
    assert settled.verdict == "cannot tell"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("faster", "cannot tell"),
        ("same", "cannot tell"),
        ("cannot tell", "cannot tell"),
        ("slower", "slower"),
        ("failed", "cannot tell"),
    ],
)
def test_a_removed_request_is_left_open_at_best(before: Verdict, after: Verdict, shop: Path, tmp_path: Path) -> None:
    (shop / "tfb.toml").write_text(toml(("quick", "/quick")))
    made = session(shop, tmp_path / "place")
    assert [*made.implementations[0].requests] == ["slow", "quick"]
    records = RunRecords(info=run_info(SIDES, ProcessLimits()))
    settled = apply_declarations(
        result(("slow", before), ("quick", "faster"), ("all", "faster")), records, made.declared
    )
    assert (settled.requests[0].verdict, settled.verdict) == (after, after)
    assert "no longer declare" in (settled.requests[0].reason or " ".join(made.notes))


def test_each_changed_key_of_the_service_is_reported(shop: Path, tmp_path: Path) -> None:
    more = 'ready = "/quick"\nlanguage = "java"\nname = "other"\nfiles = ["server.py"]\nenv = { TOKEN = "secret" }'
    (shop / "tfb.toml").write_text(toml(*BOTH, build="make fast", start="./fast --port $PORT", more=more))
    made = session(shop, tmp_path / "place")
    told = "\n".join(made.notes)
    for key in ("build", "start", "ready", "language", "name", "files", "env"):
        assert f"changes service.{key}" in told
    assert "TOKEN" in told
    assert "secret" not in told
    assert made.declared.head.service.language == ""


def test_head_cannot_name_a_running_service(shop: Path, tmp_path: Path) -> None:
    text = toml(*BOTH).replace(f'start = "{START}"', 'url = "http://127.0.0.1:9"').replace('build = "true"', "")
    (shop / "tfb.toml").write_text(text)
    with pytest.raises(UsageError, match="sets url"):
        session(shop, tmp_path / "place")


@pytest.mark.parametrize(
    "way", ['dockerfile = "Dockerfile"', 'image = "shop:1"', 'compose = "compose.yaml"\nservice = "web"']
)
def test_a_head_that_leaves_its_container_is_refused(way: str, shop: Path, tmp_path: Path) -> None:
    """Head's command would run on the host, outside base's container."""
    contained = toml(*BOTH).replace(f'start = "{START}"', way).replace('build = "true"', "")
    for name, text in (("tfb.toml", contained), ("Dockerfile", "FROM scratch\n"), ("compose.yaml", "services: {}\n")):
        (shop / name).write_text(text)
    git(shop, "add", "-A")
    git(shop, "commit", "-q", "-m", "contained")
    (shop / "tfb.toml").write_text(toml(*BOTH))
    with pytest.raises(UsageError, match="starts a command on this machine"):
        session(shop, tmp_path / "place")
    (tmp_path / "second").mkdir()
    made = prepare(shop, "main", "cmd:./server", tmp_path / "second", seed=1)
    assert made.declared.head.service.start == "./server"


def test_a_first_adoption_says_that_head_decides(shop: Path, tmp_path: Path) -> None:
    git(shop, "rm", "-q", "--cached", "tfb.toml")
    git(shop, "commit", "-q", "-m", "none yet")
    made = session(shop, tmp_path / "place")
    assert "base has no tfb.toml: head's is used for both" in made.notes


@pytest.mark.parametrize("way", ["file", "link", "folder"])
def test_head_gives_base_no_file(way: str, shop: Path, tmp_path: Path) -> None:
    """Base needs a file that is not in git, and head commits a version of the file that slows base down."""
    (shop / "tfb.toml").write_text(toml(*BOTH, more='files = ["conf/.env"]'))
    git(shop, "commit", "-q", "-a", "-m", "needs a file")
    git(shop, "checkout", "-q", "-b", "head")
    folder = shop / ("real" if way == "folder" else "conf")
    folder.mkdir()
    (folder / ("env" if way == "link" else ".env")).write_text("SLOW=1")
    if way == "link":
        (folder / ".env").symlink_to("env")
    if way == "folder":
        (shop / "conf").symlink_to("real")
    git(shop, "add", "-A")
    git(shop, "commit", "-q", "-m", "a file for base")
    with pytest.raises(UsageError, match="git tracks it"):
        session(shop, tmp_path / "place")


# ---- what head's build may do ---------------------------------------------------------------------------------------


def isolation(folder: Path, *, separate: bool) -> Isolation:
    """Return an isolation for the built sides of a service."""
    folder.mkdir()
    let_others_enter(folder)
    for side in SIDES:
        root = folder / side
        (root / "lib").mkdir(parents=True)
        (root / "server.py").write_text("base")
        (root / "lib" / "part.py").write_text("part")
        (root / "data.db").write_text("rows")
        (root / "link").symlink_to("server.py")
    made = Isolation(roots={side: folder / side for side in SIDES}, homes=folder / "homes")
    made.prepare(separate=separate)
    return made


def keep_times(path: Path, said: str) -> None:
    about = path.stat()
    path.write_text(said)
    os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns))


def swap_folder(root: Path) -> None:
    (root / "lib").rename(root.parent / "aside")
    (root / "lib").symlink_to(root.parent / "aside")


def turn_link(root: Path) -> None:
    (root / "link").unlink()
    (root / "link").symlink_to("data.db")


def new_program(root: Path) -> None:
    (root / "x").write_text("slow")
    (root / "x").chmod(0o755)


TAMPERINGS: dict[str, Callable[[Path], object]] = {
    "write": lambda root: (root / "server.py").write_text("slow"),
    "same size and times": lambda root: keep_times(root / "server.py", "slow"),
    "nested": lambda root: (root / "lib" / "part.py").write_text("slow"),
    "new program": lambda root: (root / "sitecustomize.py").write_text("slow"),
    "new link": lambda root: (root / "hashlib.py").symlink_to("../head/slow.py"),
    "removed": lambda root: (root / "lib" / "part.py").unlink(),
    "link turned": turn_link,
    "mode": lambda root: os.chmod(root / "server.py", 0o600),  # noqa: PTH101 - with a value
    "file replaced": lambda root: ((root / "new").write_text("slow"), (root / "new").rename(root / "server.py")),
    "folder swapped": swap_folder,
    "new executable": new_program,
}


@pytest.mark.parametrize("side", [BASE, COPY])
@pytest.mark.parametrize("how", TAMPERINGS)
def test_builds_of_head_that_change_base_are_found(how: str, side: str, tmp_path: Path) -> None:
    made = isolation(tmp_path / "sides", separate=False)
    with pytest.raises(TamperedError, match="build of head changed"), made.building(HEAD):
        TAMPERINGS[how](made.roots[side])


@pytest.mark.parametrize("how", TAMPERINGS)
def test_a_change_of_base_under_load_is_found(how: str, tmp_path: Path) -> None:
    made = isolation(tmp_path / "sides", separate=False)
    with made.building(HEAD):
        (made.roots[HEAD] / "server.py").write_text("head's own")
    TAMPERINGS[how](made.roots[BASE])
    with pytest.raises(TamperedError, match="base's files"):
        made.require_unchanged()


def test_restored_files_of_base_are_found(tmp_path: Path) -> None:
    """Head's server changes base's program before base starts, and restores the program later."""
    made = isolation(tmp_path / "sides", separate=False)
    with made.building(HEAD):
        os.chmod(made.roots[BASE] / "server.py", 0o644)  # noqa: PTH101 - as it is: a build may touch a shared file
    program = made.roots[BASE] / "server.py"
    about = program.stat()
    for text in ("slow", "base"):
        program.write_text(text)
    os.utime(program, ns=(about.st_atime_ns, about.st_mtime_ns))
    with pytest.raises(TamperedError, match=r"base's files: server\.py"):
        made.require_unchanged()


def test_a_huge_replacement_file_is_found_quickly(tmp_path: Path) -> None:
    made = isolation(tmp_path / "sides", separate=False)
    with pytest.raises(TamperedError, match=r"server\.py"), made.building(HEAD):
        os.truncate(made.roots[BASE] / "server.py", 1 << 42)


def test_files_that_a_server_writes_are_no_tampering(tmp_path: Path) -> None:
    made = isolation(tmp_path / "sides", separate=False)
    with made.building(HEAD):
        pass
    for name in ("data.db", "data.db-wal", "server.log", "upload.bin"):
        (made.roots[BASE] / name).write_text("written by the server")
    (made.roots[BASE] / "lib" / "__pycache__").mkdir()
    (made.roots[BASE] / "lib" / "__pycache__" / "part.cpython-311.pyc").write_bytes(b"x")
    made.require_unchanged()


def test_builds_of_head_that_shadow_programs_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "own").write_text("x")
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    jar = tmp_path / "home" / ".m2" / "repository" / "a.jar"
    jar.parent.mkdir(parents=True)
    jar.write_text("good")
    for number, path in enumerate((programs / "node", programs / "own", jar)):
        made = isolation(tmp_path / f"sides{number}", separate=False)
        with pytest.raises(TamperedError, match="a program that base uses"), made.building(HEAD):
            path.write_text("another")


@pytest.mark.parametrize("name", ["node_modules", "package.json", ".cargo"])
@pytest.mark.parametrize("up", [1, 2])
def test_files_written_above_base_are_found(name: str, up: int, tmp_path: Path) -> None:
    made = isolation(tmp_path / "sides", separate=False)
    with pytest.raises(TamperedError, match=name), made.building(HEAD):
        (made.roots[BASE].parents[up - 1] / name).mkdir()


@pytest.mark.parametrize("way", ["folder", "file", "link", "moved"])
def test_short_lived_files_above_base_are_found(way: str, tmp_path: Path) -> None:
    """Head's server creates a library in a parent folder of base while base starts, and then removes it."""
    made = isolation(tmp_path / "sides", separate=False)
    with made.building(HEAD):
        pass
    place = made.roots[BASE].parents[1] / "node_modules"
    (tmp_path / "aside").write_text("")
    ways: dict[str, Callable[[], object]] = {
        "folder": place.mkdir,
        "file": place.touch,
        "link": lambda: place.symlink_to(tmp_path),
        "moved": lambda: (tmp_path / "aside").rename(place),
    }
    ways[way]()
    (place.rmdir if way == "folder" else place.unlink)()
    for number in range(20_000):  # more events than the kernel's queue can hold
        if number % 5_000 == 0:
            made.look()
        (tmp_path / "busy").touch()
        (tmp_path / "busy").unlink()
    with pytest.raises(TamperedError, match="node_modules"):
        made.require_unchanged()


def test_new_libraries_in_shared_caches_are_allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    cache = tmp_path / "home" / ".m2" / "repository"
    cache.mkdir(parents=True)
    made = isolation(tmp_path / "sides", separate=False)
    with made.building(HEAD):
        (cache / "new.jar").write_text("a new version")


def built(folder: Path, build: str, *, separate: bool) -> tuple[PreparedComparison, dict[str, str]]:
    """Build all sides with a command; return the comparison and the status of each build."""
    let_others_enter(folder)
    shop = repository(folder / "shop", tfb__toml=toml(*BOTH, build=build), server__py=SERVER)
    prepared = session(shop, folder / "prepared")
    prepared.isolation.prepare(separate=separate)
    made = IsolatedRuntime(
        work=folder, contained={}, services=prepared.services, isolation=prepared.isolation, own_scripts=True
    )
    done = {each.name: made.build(each, folder / "logs" / each.name / "build") for each in prepared.implementations}
    return prepared, {name: build.status for name, build in done.items()}


def test_head_is_built_last(shop: Path, tmp_path: Path) -> None:
    assert [each.name for each in session(shop, tmp_path / "place").implementations] == [BASE, COPY, HEAD]


CHANGES_BASE = "case $PWD in */head) echo slow > ../base/server.py;; esac || true"


def test_a_real_build_that_rewrites_base_is_found(tmp_path: Path) -> None:
    with pytest.raises(TamperedError, match=r"base's files: server\.py"):
        built(tmp_path, CHANGES_BASE, separate=False)


@as_root
def test_as_root_head_cannot_write_to_base(tmp_path: Path) -> None:
    made, done = built(tmp_path, f"{CHANGES_BASE}; id -u > built-as; echo $HOME > home", separate=True)
    assert done == dict.fromkeys((BASE, COPY, HEAD), "ok")
    assert (made.isolation.roots[BASE] / "server.py").read_text() == SERVER
    uids = {side: (root / "built-as").read_text().strip() for side, root in made.isolation.roots.items()}
    homes = {side: (root / "home").read_text().strip() for side, root in made.isolation.roots.items()}
    assert uids[BASE] == uids[COPY] != uids[HEAD] != "0"
    assert homes[BASE] == homes[COPY] != homes[HEAD]
    assert str(Path.home()) not in homes.values()


@as_root
@pytest.mark.parametrize("target", ["{other}/cheat", "/usr/local/bin/tfb-cheat", "{home}/.npmrc-cheat"])
def test_a_build_as_root_writes_nowhere_else(target: str, tmp_path: Path) -> None:
    place = target.format(home=Path.home(), other=tmp_path / "prepared" / "homes" / "base")
    _, done = built(tmp_path, f"case $PWD in */head) echo x > {place};; esac; true", separate=True)
    assert done[HEAD] == "ok"
    assert not Path(place).exists()


@as_root
def test_build_accounts_reach_programs_in_private_homes(tmp_path: Path) -> None:
    """Root's toolchains are in a private home, and gcc checks access to them with access(2)."""
    program = tmp_path / "closed" / "tool"
    program.parent.mkdir(mode=0o700)
    program.write_text("x")
    program.chmod(0o755)
    asked = f"import os, sys; sys.exit(not os.access('{program}', os.X_OK))"
    (tmp_path / "ask.py").write_text(asked)
    _, done = built(tmp_path, f"{sys.executable} {tmp_path / 'ask.py'}", separate=True)
    assert done[HEAD] == "ok"


DAEMONS = {
    "background": "sleep 4321 &",
    "nohup": "nohup sleep 4321 > /dev/null 2>&1 &",
    "session": "setsid sleep 4321 > /dev/null 2>&1 < /dev/null &",
    "no environment": "setsid env -i sleep 4321 > /dev/null 2>&1 < /dev/null &",
    "twice forked": "(setsid sh -c 'sleep 4321 &' > /dev/null 2>&1 &);",
}


@pytest.mark.parametrize("separate", [pytest.param(True, marks=as_root), False])
@pytest.mark.parametrize("how", DAEMONS)
def test_nothing_that_a_build_starts_outlives_it(how: str, *, separate: bool, tmp_path: Path) -> None:
    seconds = str(4_000_000 + os.getpid())
    _, done = built(tmp_path, f"{DAEMONS[how].replace('4321', seconds)} sleep 0.2", separate=separate)
    assert done[HEAD] == "ok"
    until = time.monotonic() + 5
    while (left := _sleeping(seconds)) and time.monotonic() < until:
        time.sleep(0.05)
    assert not left


def _sleeping(seconds: str) -> list[int]:
    every = psutil.process_iter(["cmdline", "pid"])
    return [each.info["pid"] for each in every if (each.info["cmdline"] or [])[-2:] == ["sleep", seconds]]


# ---- all of it, for real --------------------------------------------------------------------------------------------


@pytest.mark.e2e
@pytest.mark.needs("cargo", ">=1.85")
@pytest.mark.timeout(300)
@pytest.mark.parametrize("shared", [True, pytest.param(False, marks=as_root)])
def test_a_slower_head_cannot_pass_by_rewriting_base(shop: Path, *, shared: bool) -> None:
    """This attack once resulted in the verdict "faster" and exit code 0."""
    slower = SERVER.replace("ROUNDS = 300", "ROUNDS = 900")
    (shop / "server.py").write_text(slower)
    (shop / "cheat.sh").write_text(
        "for side in base base-copy; do sed -i 's/ROUNDS = .*/ROUNDS = 9000/' ../$side/server.py; done; true\n"
    )
    (shop / "tfb.toml").write_text(toml(("quick", "/quick"), build="sh cheat.sh", connections=1))
    code, found, said = compare(shop, "--base", "main", shared_account=shared)
    assert code in (Exit.FAILED, Exit.CANNOT_TELL), said
    assert found["verdict"] not in ("faster", "same"), said
    if shared:
        assert (code, found["verdict"]) == (Exit.FAILED, "failed")
        assert "the build of head changed base's files: server.py" in said
    else:
        assert {request["request"] for request in found["requests"]} >= {"slow", "quick"}
        assert "no longer declares slow" in said


@pytest.mark.e2e
@pytest.mark.needs("cargo", ">=1.85")
@pytest.mark.timeout(300)
def test_servers_of_head_cannot_rewrite_base(shop: Path) -> None:
    cheat = (
        "import pathlib\nfor side in ('base', 'base-copy'):\n    pathlib.Path('..', side, 'server.py').write_text('')\n"
    )
    (shop / "server.py").write_text(
        f"try:\n    {cheat.replace(chr(10), chr(10) + '    ')}\nexcept OSError: pass\n{SERVER}"
    )
    code, found, said = compare(shop, "--base", "main", shared_account=True)
    assert code in (Exit.FAILED, Exit.CANNOT_TELL), said
    assert found["verdict"] not in ("faster", "same"), said


@pytest.mark.e2e
@pytest.mark.needs("cargo", ">=1.85")
@pytest.mark.timeout(300)
def test_an_addition_that_answers_wrong_fails(shop: Path) -> None:
    wrong = toml(*BOTH) + '[[request]]\nname = "new"\npath = "/quick"\n[request.expect]\njson = { ok = false }\n'
    (shop / "tfb.toml").write_text(wrong)
    code, found, said = compare(shop, "--base", "main")
    assert (code, found["verdict"]) == (Exit.FAILED, "failed"), said
    (new,) = [request for request in found["requests"] if request["request"] == "new"]
    assert "sends wrong responses" in new["reason"]
