"""Labs and queues: deployments, and whole units to run on them."""

from pathlib import Path

import pytest

from harness.errors import ConfigError
from harness.extras.deployments import units

TWO = '[[set]]\nname = "a"\nlogin = "c1.lab-a"\n\n[[set]]\nname = "b"\nlogin = "c1.lab-b"\n'


def write(folder: Path, text: str) -> Path:
    path = folder / "lab.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_deployment_is_found_by_its_name_or_login(tmp_path: Path) -> None:
    lab = units.load(write(tmp_path, TWO))
    found = [lab.find(name) for name in ("c1.lab-a", "b", "elsewhere")]
    assert [each and each.name for each in found] == ["a", "b", None]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (TWO.replace("c1.lab-b", "c1.lab-a"), "two sets have the login 'c1.lab-a'"),
        (TWO.replace('"b"', '"a"'), "two sets have the name 'a'"),
        ('[[set]]\nname = "a b"\n', "set.0.name"),
        ('[[set]]\nname = "a"\nhost = "x"\n', "set.0.host"),
        ("", "set: Field required"),
        ("[[set", "not valid TOML"),
    ],
)
def test_a_broken_lab_is_refused_with_its_key(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint.replace("[", r"\[")):
        units.load(write(tmp_path, text))


def test_every_unit_has_the_reference_and_every_implementation_is_in_each_turn_once() -> None:
    names = [f"s{i}" for i in range(10)]
    found = units.plan(names, "s3", 10.0, processes=3, together=4, seed=5)
    assert all(unit.implementations[0] == "s3" for unit in found)
    assert [len(unit.implementations) - 1 for unit in found] == [3, 3, 3] * 3
    for turn in range(3):
        members = [name for unit in found[3 * turn : 3 * turn + 3] for name in unit.implementations[1:]]
        assert sorted(members) == sorted(set(names) - {"s3"})
    assert len({unit.seed for unit in found}) == len(found)
    assert found[0].seconds == 40.0
    assert found == units.plan(names, "s3", 10.0, processes=3, together=4, seed=5)


def test_a_reference_alone_is_a_unit_of_its_own_each_time() -> None:
    found = units.plan(["s0"], "s0", 10.0, processes=2, together=4, seed=1)
    assert [unit.implementations for unit in found] == [("s0",), ("s0",)]
