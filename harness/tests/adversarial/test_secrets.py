"""Attack: secrets of the service or the user leak into records and logs, or to other programs."""

import enum
import json
import logging
import stat
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from harness import redaction
from harness.console import PlainFormatter
from harness.errors import StartError, UsageError
from harness.extras.gate.container_sides import env_file, make_contained_side
from harness.plain_text import printable
from harness.plan.service import Service
from harness.records.record import Record
from harness.records.run_info import BuildRecord
from harness.records.verification_record import CheckResult, Outcome
from harness.runtime.compose import client_environment
from harness.runtime.container import Container
from harness.tests.adversarial import engine
from harness.tests.adversarial.engine import BASE, docker, unique
from harness.tests.e2e.conftest import tfb
from harness.tests.extras.gate.test_judge import session

VALUE = "s3cr$t va'l\"ue\\n-9"
CALLERS = "ghp_0123456789abcdef"
NAMES = ("GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY", "CI_JOB_TOKEN", "TFB_STATE")


@pytest.fixture(autouse=True)
def nothing_declared() -> Iterator[None]:
    """Forget declared secrets after each test."""
    yield
    redaction.forget()


@pytest.fixture
def callers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put the caller's tokens in environment variables that tfb could leak."""
    for name in NAMES[:-1]:
        monkeypatch.setenv(name, CALLERS)
    monkeypatch.setenv("HTTPS_PROXY", f"http://user:{CALLERS}@proxy:3128")
    monkeypatch.setenv("https_proxy", "")


@pytest.mark.parametrize(
    "form",
    [
        VALUE,
        json.dumps(VALUE),
        repr(VALUE),
        "s3cr%24t%20va%27l%22ue%5Cn-9",
        "czNjciR0IHZhJ2widWVcbi05",
        VALUE.replace("$", "$$"),
    ],
)
def test_every_form_of_a_value_is_replaced(form: str) -> None:
    redaction.declare({"SHOP_KEY": VALUE})
    shown = printable(f"before {form} after")
    assert shown.startswith("before")
    assert "[SHOP_KEY]" in shown
    assert "cr%24t" not in shown
    assert "va'l" not in shown


def test_parts_of_a_value_are_replaced() -> None:
    redaction.declare({"DB": "postgres://user:hunter22@db/shop", "PEM": "-----BEGIN\nMIIEvQIBADAN\n-----END"})
    assert redaction.redacted("password hunter22, key MIIEvQIBADAN") == "password [DB], key [PEM]"


def test_plain_words_and_ports_stay_readable() -> None:
    redaction.declare({"LOG": "warn", "PORT": "8080", "HOST": "0.0.0.0", "NODE_ENV": "production"})  # noqa: S104 - a value that is no secret
    text = "warn: production listens on 0.0.0.0:8080"
    assert redaction.redacted(text) == text
    redaction.declare({"API_TOKEN": "warn"})
    assert "[API_TOKEN]" in redaction.redacted(text)


def test_records_and_the_log_are_redacted(tmp_path: Path) -> None:
    redaction.declare({"TOKEN": VALUE, "PIN_KEY": "1234567890"})
    build = BuildRecord(status="failed", reason=f"it said {VALUE}", duration=1234567890.0)
    assert json.loads(build.to_json())["reason"] == "it said [TOKEN]"
    assert BuildRecord.model_validate_json(build.to_json()).duration == 1234567890.0
    handler = logging.FileHandler(tmp_path / "log", encoding="utf-8")
    handler.setFormatter(PlainFormatter())
    logger = logging.getLogger("tfb.test_secrets")
    logger.addHandler(handler)
    logger.warning("start: docker run --env %s", VALUE)
    logger.removeHandler(handler)
    handler.close()
    assert (tmp_path / "log").read_text() == "start: docker run --env [TOKEN]\n"


@pytest.mark.parametrize("word", ["closed", "open", "measure", "pass", "fail", "failed", "root", "base", "head"])
def test_secrets_equal_to_words_keep_records_readable(word: str) -> None:
    records = session(np.random.default_rng(1), 1.2)
    written: list[Record] = [records.info, *records.trials[:9], *records.processes, *records.verdicts]
    before = [type(each).model_validate_json(each.to_json()).model_dump() for each in written]
    redaction.declare({"API_TOKEN": word})
    assert [type(each).model_validate_json(each.to_json()).model_dump() for each in written] == before
    check = json.loads(
        CheckResult(check=word, rule=word, outcome=Outcome.FAIL, message=f"got {word}", actual=word).to_json()
    )
    assert (check["check"], check["message"], check["actual"]) == (word, "got [API_TOKEN]", "[API_TOKEN]")


def test_no_enumeration_of_a_record_is_redacted() -> None:
    open_ends, seen = [Record], set[type[Record]]()
    while open_ends:
        seen |= (found := set(open_ends.pop().__subclasses__()) - seen)
        open_ends += found
    for record in seen:
        for name, field in record.model_fields.items():
            words = "Literal[" in str(field.annotation) or (
                isinstance(field.annotation, type) and issubclass(field.annotation, enum.Enum)
            )
            assert not words or (field.serialization_alias or field.alias or name) in redaction.IDENTIFIERS, (
                record,
                name,
            )


def test_logs_with_invalid_utf8_are_redacted(tmp_path: Path) -> None:
    redaction.declare({"TOKEN": VALUE})
    (tmp_path / "log").write_bytes(b"\xff\xfe " + VALUE.encode() + b" \x00")
    redaction.redact_file(tmp_path / "log")
    assert (tmp_path / "log").read_bytes() == b"\xff\xfe [TOKEN] \x00"


def test_a_client_sees_no_token_of_the_caller(callers: None) -> None:
    assert not set(NAMES) & set(client_environment())
    assert CALLERS not in json.dumps(client_environment(proxies=False))


def test_names_that_are_no_variables_are_refused(tmp_path: Path) -> None:
    session = engine.session(tmp_path)
    for name in ("A=B", "A\nLD_PRELOAD", "", "A B", "1A"):
        with pytest.raises(UsageError, match=r"service\.env"):
            make_contained_side("head", Service(image="x", env={name: "1"}), tmp_path, tmp_path, session)


@pytest.mark.docker
@pytest.mark.parametrize("value", [VALUE, "$HOME", "${HOME}", "a\nB=1", "#x", "'", '"', "\\", "$$", " x ", "é", ""])
def test_a_value_reaches_its_container_unchanged(tmp_path: Path, value: str) -> None:
    for name, service in (
        ("image", Service(image=BASE, env={"VALUE": value})),
        ("compose", Service(compose="compose.yaml", service="web", env={"VALUE": value})),
    ):
        text = f'services: {{web: {{image: "{BASE}", environment: {{VALUE: "${{VALUE}}"}}}}}}'
        (tmp_path / "compose.yaml").write_text(text)
        made = make_contained_side(name, service, tmp_path, tmp_path, engine.session(tmp_path))
        (entry,) = made.model["services"].values()
        assert entry["environment"]["VALUE"].replace("$$", "$") == value, name


def test_an_env_file_holds_one_variable_a_line() -> None:
    assert env_file({"A": 'a"$b\\', "B": "1"}) == 'A="a\\"\\$b\\\\"\nB="1"\n'


LEAKY = f"""
services:
  web:
    image: {BASE}
    command: [sh, -c, "printenv; echo token $$SHOP_TOKEN; sleep 600"]
    environment:
      - GITHUB_TOKEN
      - COPY=${{GITHUB_TOKEN}}${{AWS_SECRET_ACCESS_KEY:-}}
      - PROXY=${{HTTPS_PROXY}}
      - SHOP_TOKEN
    secrets: [shop]
    build:
      context: .
      args: [CI_JOB_TOKEN, "COPY=$CI_JOB_TOKEN"]
secrets: {{shop: {{environment: SHOP_TOKEN}}}}
"""


@pytest.mark.docker
def test_no_token_of_the_caller_reaches_a_container(tmp_path: Path, callers: None) -> None:
    files = {"compose.yaml": LEAKY, "Dockerfile": f"FROM {BASE}\nARG CI_JOB_TOKEN\nARG COPY\nRUN printenv >/built\n"}
    session = engine.session(tmp_path)
    with (
        engine.side("head", files, session, tmp_path, env={"SHOP_TOKEN": VALUE}) as side,
        side.started(tmp_path / "log") as container,
    ):
        known = docker("inspect", container) + docker("exec", container, "cat", "/built", "/proc/1/environ")
        assert CALLERS not in known + (tmp_path / "head.log").read_text()
        assert docker("exec", container, "cat", "/run/secrets/shop") == VALUE
        assert f"SHOP_TOKEN={VALUE}" in docker("exec", container, "cat", "/proc/1/environ")


@pytest.mark.docker
def test_secrets_are_passed_in_private_files_only(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, callers: None
) -> None:
    caplog.set_level(logging.INFO)
    files = {"compose.yaml": LEAKY, "Dockerfile": f"FROM {BASE}\n"}
    session = engine.session(tmp_path)
    with (
        engine.side("head", files, session, tmp_path, env={"SHOP_TOKEN": VALUE}) as side,
        side.started(tmp_path / "log"),
    ):
        assert "va'l" not in caplog.text
        for file in session.scratch.iterdir():
            assert stat.S_IMODE(file.stat().st_mode) == 0o600, file
        assert stat.S_IMODE(session.scratch.stat().st_mode) == 0o700


@pytest.mark.docker
def test_only_the_user_reads_logs_of_containers(tmp_path: Path) -> None:
    text = f"services: {{web: {{image: '{BASE}', command: [sh, -c, 'echo $$SHOP_TOKEN; sleep 600']}}}}"
    followed, refused = tmp_path / "followed.log", tmp_path / "refused.log"
    session = engine.session(tmp_path)
    with engine.side("head", {"compose.yaml": text}, session, tmp_path) as side, side.started(tmp_path / "log") as id_:
        Container("head", id_, followed).stop()
    text = f"services: {{web: {{image: '{BASE}', command: [/nothing]}}}}"
    with engine.side("other", {"compose.yaml": text}, session, tmp_path) as side, pytest.raises(StartError):
        side.started(refused).__enter__()
    assert [stat.S_IMODE(log.stat().st_mode) for log in (followed, refused)] == [0o600, 0o600]


@pytest.mark.docker
def test_an_error_of_compose_shows_no_value(tmp_path: Path) -> None:
    text = f"services: {{web: {{image: '{BASE}', command: ['$SHOP_TOKEN']}}}}"
    session = engine.session(tmp_path)
    with engine.side("head", {"compose.yaml": text}, session, tmp_path, env={"SHOP_TOKEN": VALUE}) as side:
        with pytest.raises(StartError) as error, side.started(tmp_path / "log"):
            pass
        assert "va'l" not in str(error.value) + (tmp_path / "log").read_text()


SERVER = """
use strict;
use IO::Socket::INET;
print "$_=$ENV{$_}\\n" for sort keys %ENV;
my $server = IO::Socket::INET->new(LocalPort => 8080, Listen => 1024, ReuseAddr => 1) or die;
$SIG{CHLD} = 'IGNORE';
while (1) {
    my $line = $server->accept or next;
    next if fork;
    while (defined(my $read = <$line>)) {
        next unless $read eq "\\r\\n";
        my $body = '{"ok":false,"token":"' . ($ENV{SHOP_TOKEN} =~ s/(["\\\\])/\\\\$1/gr) . '"}';
        my $head = "HTTP/1.1 200 OK\\r\\nContent-Type: application/json\\r\\nContent-Length: ";
        print $line $head . length($body) . "\\r\\n\\r\\n$body";
        $line->flush;
    }
    exit 0;
}
"""
TOML = """
[service]
compose = "compose.yaml"
service = "web"
connections = 4
env = { SHOP_TOKEN = 'abc-S3CRET-xyz"9' }
[[request]]
name = "root"
path = "/"
expect = { json = { ok = true } }
"""


@pytest.mark.docker
@pytest.mark.e2e
@pytest.mark.timeout(900)
def test_a_comparison_hides_secrets_and_keeps_volumes(tmp_path: Path, callers: None) -> None:
    """The service prints its environment and sends a token in its responses."""
    volume, folder = unique("acme-data"), tmp_path / "shop"
    folder.mkdir()
    text = f"""
services:
  web:
    build: .
    container_name: {volume}
    environment: ["SHOP_TOKEN=${{SHOP_TOKEN}}", GITHUB_TOKEN]
    volumes: ["data:/data"]
volumes: {{data: {{name: {volume}}}}}
"""
    image = f'FROM {BASE}\nCOPY server.pl /\nCMD ["perl", "/server.pl"]\n'
    for name, each in (("server.pl", SERVER), ("compose.yaml", text), ("tfb.toml", TOML), ("Dockerfile", image)):
        (folder / name).write_text(each, encoding="utf-8")
    docker("volume", "create", volume)
    try:
        side = f"dir:{folder}"
        words = ("--base", side, "--head", side, "--time", "25s", "--yes", "--results", str(tmp_path / "results"))
        completed = tfb("compare", *words, "--html", str(tmp_path / "page.html"), seconds=600, cwd=folder)
        assert "Expected True, got False" in completed.stdout + completed.stderr
        outputs = completed.stdout + completed.stderr + (tmp_path / "page.html").read_text()
        logs = [path for path in (tmp_path / "results").rglob("*") if path.is_file()]
        outputs += "".join(path.read_text(errors="replace") for path in logs)
        assert "[SHOP_TOKEN]" in outputs
        assert "S3CRET" not in outputs
        assert CALLERS not in outputs
        assert docker("volume", "inspect", "--format", "{{.Name}}", volume) == volume
        run = next((tmp_path / "results").glob("2*")).name
        for listing in ("ps --all", "network ls", "volume ls"):
            assert (
                docker(*listing.split(), "--quiet", "--filter", f"label=org.tfb.run={run}", "--filter", "name=tfb-")
                == ""
            )
    finally:
        docker("volume", "rm", "--force", volume, check=False)


@pytest.mark.docker
def test_a_service_cannot_replace_the_client(tmp_path: Path) -> None:
    """Variables of the service change neither the docker client's search path nor its dynamic loader."""
    marker = tmp_path / "ran"
    (tmp_path / "bin").mkdir()
    fake = tmp_path / "bin" / "docker"
    fake.write_text(f"#!/bin/sh\ntouch {marker}\n")
    fake.chmod(0o755)
    env = {
        "PATH": f"{tmp_path}/bin",
        "LD_PRELOAD": str(fake),
        "DOCKER_HOST": "tcp://192.0.2.1:1",
        "HOME": str(tmp_path),
    }
    text = f"services: {{web: {{image: '{BASE}', command: [sleep, '600'], environment: {{P: '${{PATH}}'}}}}}}"
    session = engine.session(tmp_path)
    with (
        engine.side("head", {"compose.yaml": text}, session, tmp_path, env=env) as side,
        side.started(tmp_path / "log") as container,
    ):
        assert container
    assert not marker.exists()
