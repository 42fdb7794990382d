"""Output of ``./tfb doctor`` and ``./tfb clean``."""

import pytest

from harness.cli import doctor
from harness.errors import EnvironmentLacksError, Exit
from harness.host.leftovers import Leftover
from harness.provisioning.requirements import ToolRequirement
from harness.runtime import compose, images

LONG = tuple(f"an-implementation-with-a-long-name-{number}" for number in range(5))


@pytest.mark.parametrize(("names", "shown"), [((), "tfb"), (tuple("abcdefg"), "7 implement"), (LONG, ", ".join(LONG))])
def test_many_users_of_a_tool_are_counted(
    names: tuple[str, ...], shown: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    doctor.show_tools([ToolRequirement(kind="java", condition=">=25", required_by=names, tool=None)])
    assert shown in next(line for line in capsys.readouterr().out.splitlines() if "java" in line)


@pytest.mark.parametrize(("stays", "code"), [(False, Exit.OK), (True, Exit.FAILED)])
@pytest.mark.parametrize("answers", [True, False])
def test_clean_names_unremoved_leftovers_and_unchecked_images(
    stays: bool, code: Exit, answers: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def engine() -> str:
        if not answers:
            raise EnvironmentLacksError("none")
        return "29"

    def remove() -> None:
        if stays:
            raise OSError("busy")

    left = Leftover(kind="folder", name="tfb-x", is_certain=True, remove=remove)
    monkeypatch.setattr(compose, "engine_version", engine)
    monkeypatch.setattr(images, "own_images", list)
    monkeypatch.setattr(doctor, "find_leftovers", lambda: (left,))
    assert doctor.clean(yes=True) == code
    output = capsys.readouterr().out
    assert ("images were not checked" in output, "not removed: folder tfb-x: busy" in output) == (not answers, stays)
