"""Broken configurations, profiles and command lines are reported, and do not affect valid folders."""

import json
import os
import stat
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from harness.errors import ConfigError
from harness.plan import profile
from harness.tests.scene import PROFILE, Scene

pytestmark = pytest.mark.fault

BRACKETS = 100_000
DIGITS = "1" * 10_000


def document(name: object = "bad", **changes: object) -> bytes:
    """Return a valid configuration with the given changes."""
    entry = {"language": "X", "json_url": "/json", "local": {"run": ["true"]}, **changes}
    return json.dumps({"framework": name, "tests": [{"default": entry}]}).encode()


def local(**changes: object) -> bytes:
    """Return a valid configuration with changes in its ``local`` block."""
    return document(local={"run": ["true"], **changes})


def text(language: str) -> bytes:
    """Return a valid configuration with raw JSON text as the value of ``language``."""
    return document().decode().replace('"X"', language).encode("latin-1")


CONFIGS: Mapping[str, Mapping[str, bytes]] = {
    "no JSON": {
        "utf-16": document().decode().encode("utf-16"),
        "objects": b'{"a":' * BRACKETS + b"1" + b"}" * BRACKETS,
        "two megabytes": b" " * (2 << 20) + document(),
    },
    "no configuration": {
        "null": b"null",
        "150 levels": text("[" * 150 + "]" * 150),
        "infinite": text("1e400"),
        "10,000 unknown keys": document(**{f"key{n}": n for n in range(10_000)}),
        "a key of a megabyte": document(**{"k" * 900_000: 1}),
        "no tests": json.dumps({"framework": "bad", "tests": []}).encode(),
        "wait": document(wait_before_sending_requests=1_000_000),
    },
    "a dangerous name": {
        name: document(name)
        for name in ("../../../escaped", "/tmp/escaped", "..", "a/b", "a\\b", "-rf", "n" * 300, "")  # noqa: S108
    }
    | {f"control {number}": document(name) for number, name in enumerate(("a\nb", "a\x1b[2Jb", "a\0b", "a\ud800b"))}
    | {"variant": document().replace(b'"default"', b'"../../../escaped"')},
    "a dangerous command": {
        "NUL in run": local(run=["tr\0ue"]),
        "half a character in run": local(run=["\ud800"]),
        "an empty run": local(run=[]),
        "a long word in run": local(run=["w" * 100_000]),
        "= in a key of env": local(env={"A=B": "1"}),
        "NUL in env": local(env={"A": "\0"}),
        "a tool's path": local(requires={"../evil": ">=1"}),
        "a tool's flag": local(requires={"--force-yes": ">=1"}),
        "a version's digits": local(requires={"java": ">=" + DIGITS}),
    },
    "a dangerous value": {
        "URL of letters": document(json_url="/js\u00f6n"),
        "URL with a header": document(json_url="/ HTTP/1.1\r\nX: y"),
        "long URL": document(json_url="/" + "u" * 10_000),
        "another host": document(json_url="http://example.org/"),
        "Dockerfile above": document(dockerfile="../../../etc/passwd"),
        "Dockerfile elsewhere": document(dockerfile="/etc/passwd"),
        "escape in display_name": document(display_name="\x1b]0;owned\x07"),
        "escape in a tag": document(tags=["\x1b[31m"]),
        "turned writing": document(notes="\u202egnp.exe"),
    },
}


def listed(scene: Scene, broken: Sequence[str]) -> None:
    """Assert that valid folders are listed, broken folders are reported, and no path escapes its folder."""
    answer = scene.tfb("--list-tests", "--frameworks", str(scene.frameworks))
    assert "good" in answer.stdout.split()
    answer.ends(1).says(*(f"Python/{folder}/benchmark_config.json: " for folder in broken))
    assert list(scene.root.rglob("*escaped*")) == []


@pytest.mark.parametrize("kind", CONFIGS)
def test_broken_configuration_is_reported_with_its_reason(scene: Scene, kind: str) -> None:
    scene.add("good")
    for number, data in enumerate(CONFIGS[kind].values()):
        scene.write(f"bad{number}", data)
    listed(scene, [f"bad{number}" for number in range(len(CONFIGS[kind]))])


SPECIAL: Mapping[str, Callable[[Path], object]] = {
    "pipe": os.mkfifo,
    "folder": Path.mkdir,
    "device": lambda path: path.symlink_to("/dev/zero"),
    "loop": lambda path: path.symlink_to(path),
    "dangling": lambda path: path.symlink_to("nothing"),
    "socket": lambda path: os.mknod(path, stat.S_IFSOCK | 0o600),
}


def test_special_files_are_reported_without_waiting(scene: Scene) -> None:
    scene.add("good")
    for name, make in SPECIAL.items():
        path = scene.write(name, b"")
        path.unlink()
        make(path)
    listed(scene, list(SPECIAL))


def test_run_is_planned_despite_a_broken_configuration(scene: Scene) -> None:
    scene.add("good")
    scene.write("bad", document("../../../escaped"))
    scene.measure("--test", "run", "--dry-run").ends(0).says("good", "Python/bad/benchmark_config.json: framework")


NAMES = (b"a\nb", b"a\x1b[2Jb", b"a\xff\xfeb", "a\u202egnp".encode(), b"n" * 255)


def test_control_characters_in_folder_names_are_not_printed(scene: Scene) -> None:
    scene.add("good")
    for name in NAMES:
        scene.write(os.fsdecode(name), b"{")
    listed(scene, [])


def changed(old: str, new: str) -> bytes:
    """Return the profile with ``old`` replaced by ``new``."""
    assert old in PROFILE
    return PROFILE.replace(old, new, 1).encode()


SWEEP = "concurrency = [8]"
PROFILES: Mapping[str, bytes] = {
    "level zero": changed(SWEEP, "concurrency = [0]"),
    "no levels": changed(SWEEP, "concurrency = []"),
    "thousands of levels": changed(SWEEP, f"concurrency = {list(range(1, 5000))}"),
    "minimum above maximum": changed("minimum = 1", "minimum = 4"),
    "maximum huge": changed("maximum = 1", "maximum = 1000000000"),
    "time infinite": changed("cap_seconds = 1.0", "cap_seconds = inf"),
    "time not a number": changed("cap_seconds = 1.0", "cap_seconds = nan"),
    "duration of years": changed("duration_seconds = 1.0", "duration_seconds = 1e12"),
    "unknown key": b"duraton = 3\n" + PROFILE.encode(),
    "unknown design": b'design = "hope"\n' + PROFILE.encode(),
    "nested": f"x = {'[' * 20_000}{']' * 20_000}\n{PROFILE}".encode(),
    "escape": changed("Faults: as", "\\u001b[2JFaults: as"),
    "two megabytes": b"# " + b"x" * (2 << 20),
}


def test_invalid_profile_is_reported_by_file_and_key(tmp_path: Path) -> None:
    """Invalid values are rejected before a run starts."""
    messages = {}
    for name, data in PROFILES.items():
        path = tmp_path / f"{name}.toml"
        path.write_bytes(data)
        with pytest.raises(ConfigError, match=f"{name}.toml: ") as error:
            profile.load_profile(str(path))
        messages[name] = str(error.value)
    assert "duraton: unknown key; did you mean duration_seconds" in messages["unknown key"]
    assert "levels.concurrency: must not be empty" in messages["no levels"]


@pytest.mark.parametrize("name", ["level zero", "nested", "escape", "pipe", "device"])
def test_command_rejects_an_invalid_profile_immediately(scene: Scene, name: str) -> None:
    scene.add("good")
    scene.profile = scene.root / "bad.toml"
    SPECIAL[name](scene.profile) if name in SPECIAL else scene.profile.write_bytes(PROFILES[name])
    scene.tfb(*scene.words("--test", "good", "--dry-run")).ends(2).says("bad.toml: ")
    assert list(scene.results.iterdir()) == []
