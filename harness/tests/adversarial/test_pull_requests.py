"""Attack: a pull request manipulates the regression gate through its tfb.toml."""

from pathlib import Path

import pytest

from harness.errors import Exit, UsageError
from harness.extras.gate.cli import prepare
from harness.extras.gate.declared import apply_declarations, without_added_requests
from harness.extras.gate.judge import GateResult, RequestVerdict
from harness.extras.gate.paired import BASE, COPY, HEAD, SIDES
from harness.extras.gate.report import headline
from harness.plan.profile import ProcessLimits
from harness.records.loads import ClosedLoop
from harness.records.run_records import RunRecords
from harness.records.verdicts import Verdict
from harness.records.verification_record import Outcome
from harness.tests.doubles.records import verdict
from harness.tests.doubles.repositories import git, repository
from harness.tests.doubles.runs import run_info
from harness.tests.doubles.shop_service import BOTH, SERVER, START, compare, session, shop_repository, toml


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """Create a service repository whose main branch declares a slow and a fast request."""
    return shop_repository(tmp_path)


def result(*verdicts: tuple[str, Verdict]) -> GateResult:
    found = tuple(RequestVerdict(request=name, verdict=verdict) for name, verdict in verdicts)
    return GateResult(
        base="main", head="head", threshold=0.05, verdict="faster", requests=found, minutes=1.0, started_at=0.0
    )


def test_connections_of_head_do_not_count(shop: Path, tmp_path: Path) -> None:
    (shop / "tfb.toml").write_text(toml(*BOTH, connections=1))
    prepared = session(shop, tmp_path / "place")
    assert prepared.declared.base.service.connections == 4
    assert prepared.declared.head.service.connections == 4
    assert any(
        "service.connections from '4' to '1'" in note and "base's value applies" in note for note in prepared.notes
    )


def test_weights_of_head_do_not_count(shop: Path, tmp_path: Path) -> None:
    (shop / "tfb.toml").write_text(toml(*BOTH, weight=0))
    made = session(shop, tmp_path / "place")
    assert {request.weight for request in made.declared.base.request} == {1.0}
    assert any("declares slow, quick differently" in note for note in made.notes)


def test_budgets_of_head_do_not_count(shop: Path, tmp_path: Path) -> None:
    limits = 'threshold = "{}%"\nbudget_p99 = "{}ms"\nbudget_cpu = "{}us"\n[request.expect]'
    for commit, values in ((True, (1, 2, 3)), (False, (100, 2000, 3000))):
        (shop / "tfb.toml").write_text(toml(*BOTH).replace("[request.expect]", limits.format(*values)))
        if commit:
            git(shop, "commit", "-q", "-a", "-m", "limits")
    prepared = session(shop, tmp_path / "place")
    for request in prepared.declared.base.request:
        assert (request.threshold, request.budget_p99, request.budget_cpu) == pytest.approx((0.01, 2e-3, 3e-6))
    assert any("declares slow, quick differently" in note for note in prepared.notes)
    assert prepared.declared.changed == ()  # head changed no expected responses


def test_changed_requests_are_measured_as_base_declares(shop: Path, tmp_path: Path) -> None:
    (shop / "tfb.toml").write_text(toml(("slow", "/quick"), ("quick", "/quick")))
    prepared = session(shop, tmp_path / "place")
    targets = {each.name: each.requests["slow"].requests[0].target for each in prepared.implementations}
    assert targets == dict.fromkeys(SIDES, "/slow")
    assert any("declares slow differently" in note for note in prepared.notes)


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
    prepared = session(shop, tmp_path / "place")
    assert {each.name: [*each.requests] for each in prepared.implementations} == {
        BASE: ["slow", "quick"],
        COPY: ["slow", "quick"],
        HEAD: ["slow", "quick", "new"],
    }
    assert any("not in base: new" in note for note in prepared.notes)
    records = RunRecords(
        info=run_info(
            SIDES, ProcessLimits(), loads=dict.fromkeys(("slow", "quick", "new"), (ClosedLoop(connections=4),))
        )
    )
    assert [*without_added_requests(records, prepared.declared).info.loads] == ["slow", "quick"]
    settled = apply_declarations(result(("slow", "same"), ("quick", "same")), records, prepared.declared)
    assert settled.requests[-1].verdict == "cannot tell"  # no side's verification covered the new request
    assert settled.verdict == "cannot tell"


def recorded(**outcomes: str) -> RunRecords:
    """Return verification records. ``base_new="404"`` means that base failed the request "new"; "" means a pass."""
    verdicts = []
    for name, status in outcomes.items():
        side, _, request = name.partition("_")
        one = verdict(side.replace("copy", COPY), request, Outcome.FAIL if status else Outcome.PASS)
        results = (one.results[0].model_copy(update={"actual": f"{status} Reason: ''", "message": "wrong status"}),)
        verdicts.append(one.model_copy(update={"results": results}))
    loads = {name.partition("_")[2]: (ClosedLoop(connections=4),) for name in outcomes}
    return RunRecords(info=run_info(SIDES, ProcessLimits(), loads=loads), verdicts=verdicts)


CHANGES = {
    "path": ('path = "/slow"', 'path = "/v2/slow"'),
    "status": ("[request.expect]", "[request.expect]\nstatus = 201"),
    "json": ("ok = true", 'ok = "yes"'),
    "method": ('path = "/slow"', 'path = "/slow"\nmethod = "POST"'),
    "headers": ('path = "/slow"', 'path = "/slow"\nheaders = { Accept = "text/html" }'),
}


@pytest.mark.parametrize("key", CHANGES)
def test_changed_declarations_are_verified_on_head_too(key: str, shop: Path, tmp_path: Path) -> None:
    (shop / "tfb.toml").write_text(toml(*BOTH).replace(*CHANGES[key], 1))
    prepared = session(shop, tmp_path / "place")
    kinds = {each.name: [*each.requests] for each in prepared.implementations}
    assert kinds == {BASE: ["slow", "quick"], COPY: ["slow", "quick"], HEAD: ["slow", "quick", "slow~head"]}
    failed = result(("slow", "failed"), ("quick", "same"))
    for own, verdict_on_slow in (("", "cannot tell"), ("500", "failed")):
        records = recorded(head_slow="404", **{"head_slow~head": own}, head_quick="")
        settled = apply_declarations(failed, records, prepared.declared)
        assert [each.verdict for each in settled.requests] == [verdict_on_slow, "same"]
        assert settled.verdict == verdict_on_slow
    assert (
        "not base's"
        in apply_declarations(failed, recorded(head_slow="404", **{"head_slow~head": ""}), prepared.declared)
        .requests[0]
        .reason
    )


def test_changed_declarations_excuse_no_other_failure(shop: Path, tmp_path: Path) -> None:
    (shop / "tfb.toml").write_text(toml(*BOTH).replace(*CHANGES["path"], 1))
    prepared = session(shop, tmp_path / "place")
    records = recorded(head_slow="", **{"head_slow~head": ""})  # head passed verification, so it failed under load
    for before in ("failed", "slower", "same"):
        assert apply_declarations(result(("slow", before)), records, prepared.declared).verdict == before


def test_weights_are_no_different_declaration(shop: Path, tmp_path: Path) -> None:
    (shop / "tfb.toml").write_text(toml(*BOTH, weight=3))
    made = session(shop, tmp_path / "place")
    assert [*made.implementations[-1].requests] == ["slow", "quick"]


@pytest.mark.parametrize(
    ("target", "statuses", "verdict_on_new"),
    [
        ("main", ("404", "404", ""), "not in base"),
        ("cmd:./old", ("405", "405", ""), "not in base"),
        ("image:shop:1", ("501", "501", ""), "not in base"),
        ("http://127.0.0.1:9", ("404", "404", ""), "not in base"),
        ("main", ("404", "404", "500"), None),
        ("main", ("500", "500", ""), None),
        ("main", ("404", "", ""), None),
        ("own", ("404", "404", ""), None),
    ],
)
def test_requests_unknown_to_base_do_not_decide(
    target: str, statuses: tuple[str, str, str], verdict_on_new: str | None, shop: Path, tmp_path: Path
) -> None:
    """Base has no tfb.toml, or is a command, image or running service. With "own", base declares the request too."""
    (shop / "tfb.toml").write_text(toml(*BOTH, ("new", "/new")))
    if target == "main":
        git(shop, "rm", "-q", "--cached", "tfb.toml")
    if target in ("main", "own"):
        git(shop, "commit", "-q", "-a", "-m", "prepared")
        (shop / "tfb.toml").write_text(toml(*BOTH, ("new", "/new")))
    (tmp_path / "place").mkdir()
    base = "main" if target == "own" else target
    head = None if base == "main" else target.replace("9", "8")
    prepared = prepare(shop, base, head, tmp_path / "place", seed=1)
    of_base, of_copy, of_head = statuses
    records = recorded(base_new=of_base, copy_new=of_copy, head_new=of_head, base_slow="", copy_slow="", head_slow="")
    assert ("new" not in without_added_requests(records, prepared.declared).info.loads) == bool(verdict_on_new)
    settled = apply_declarations(result(("slow", "same")), records, prepared.declared)
    assert [each.verdict for each in settled.requests[1:]] == ([verdict_on_new] if verdict_on_new else [])


def test_a_base_without_any_request_is_explained(shop: Path, tmp_path: Path) -> None:
    git(shop, "rm", "-q", "--cached", "tfb.toml")
    git(shop, "commit", "-q", "-m", "none yet")
    made = session(shop, tmp_path / "place")
    statuses = {f"{side}_{name}": "404" * (side != "head") for side in ("base", "copy", "head") for name in dict(BOTH)}
    settled = apply_declarations(result(), recorded(**statuses), made.declared)
    assert headline(settled) == "cannot tell: base supports none of the requests"


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
    prepared = session(shop, tmp_path / "place")
    assert [*prepared.implementations[0].requests] == ["slow", "quick"]
    records = RunRecords(info=run_info(SIDES, ProcessLimits()))
    settled = apply_declarations(
        result(("slow", before), ("quick", "faster"), ("all", "faster")), records, prepared.declared
    )
    assert (settled.requests[0].verdict, settled.verdict) == (after, after)
    assert "no longer declare" in (settled.requests[0].reason or " ".join(prepared.notes))


def test_each_changed_key_of_the_service_is_reported(shop: Path, tmp_path: Path) -> None:
    more = 'ready = "/quick"\nlanguage = "java"\nname = "other"\nfiles = ["server.py"]\nenv = { TOKEN = "secret" }'
    (shop / "tfb.toml").write_text(toml(*BOTH, build="make fast", start="./fast --port $PORT", keys=more))
    prepared = session(shop, tmp_path / "place")
    told = "\n".join(prepared.notes)
    for key in ("build", "start", "ready", "language", "name", "files", "env"):
        assert f"changes service.{key}" in told
    assert "TOKEN" in told
    assert "secret" not in told
    assert prepared.declared.head.service.language == ""


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
    with pytest.raises(UsageError, match="runs a command on this machine"):
        session(shop, tmp_path / "place")
    (tmp_path / "second").mkdir()
    made = prepare(shop, "main", "cmd:./server", tmp_path / "second", seed=1)
    assert made.declared.head.service.start == "./server"


def test_a_first_adoption_says_that_head_decides(shop: Path, tmp_path: Path) -> None:
    git(shop, "rm", "-q", "--cached", "tfb.toml")
    git(shop, "commit", "-q", "-m", "none yet")
    made = session(shop, tmp_path / "place")
    assert "base has no tfb.toml: head's file applies to both" in made.notes


@pytest.mark.parametrize("way", ["file", "link", "folder"])
def test_head_gives_base_no_file(way: str, shop: Path, tmp_path: Path) -> None:
    """Base needs a file that is not in git. Head commits a version of this file that would slow base down."""
    (shop / "tfb.toml").write_text(toml(*BOTH, keys='files = ["conf/.env"]'))
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
    with pytest.raises(UsageError, match="git tracks the file"):
        session(shop, tmp_path / "place")


@pytest.mark.e2e
@pytest.mark.needs("cargo", ">=1.85")
@pytest.mark.timeout(300)
def test_additions_and_new_expectations_decide_nothing(shop: Path) -> None:
    changed = toml(("slow", "/slow"), ("quick", "/quick"), ("new", "/new")).replace("ok = true", "new = true", 1)
    (shop / "tfb.toml").write_text(changed)
    (shop / "server.py").write_text(
        SERVER.replace(
            "body = b'{\"ok\": true}'", "body = b'{\"new\": true}' if self.path == '/slow' else b'{\"ok\": true}'"
        )
    )
    code, document, output = compare(shop, "--base", "main")
    verdicts = {request["request"]: request["verdict"] for request in document["requests"]}
    assert (code, verdicts["slow"], verdicts["new"]) == (Exit.CANNOT_TELL, "cannot tell", "not in base"), output
    assert verdicts["quick"] in ("same", "faster", "cannot tell")
    assert "head's responses match head's tfb.toml, but not base's" in output


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
