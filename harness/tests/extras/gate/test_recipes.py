"""``init`` proposes a production configuration for services from their frameworks' own tutorials."""

import json
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from harness import cli
from harness.cli.scans import NOT_JUDGED
from harness.errors import Exit
from harness.plan import service
from harness.tests.e2e.conftest import tfb
from harness.tests.extras.gate.recipe import Recipe
from harness.tests.extras.gate.recipes_compiled import COMPILED_RECIPES, DOCKER_COMPOSE, SINATRA_OF_DISTRIBUTION
from harness.tests.extras.gate.recipes_node import NODE_RECIPES
from harness.tests.extras.gate.recipes_python import PYTHON_RECIPES

NATIVE = (*NODE_RECIPES, *PYTHON_RECIPES, *COMPILED_RECIPES)


def name_of(recipe: Recipe) -> str:
    return f"{recipe.stack}{' without Gemfile' if recipe is SINATRA_OF_DISTRIBUTION else ''}"


LIMIT = 600.0  # time limit in seconds for building a service and reaching a verdict


def git(folder: Path, *words: str) -> None:
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "safe.directory=*"]
    subprocess.run(["git", *identity, "-C", folder, *words], check=True, capture_output=True, timeout=30)


@pytest.mark.parametrize("recipe", [*NATIVE, DOCKER_COMPOSE], ids=name_of)
def test_init_proposes_production_mode(recipe: Recipe, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recipe.write(tmp_path)
    assert cli.main(["init", str(tmp_path)]) == Exit.OK
    said = capsys.readouterr().out
    assert f"written for {recipe.stack} (" in said
    assert f"compare --service {tmp_path} --base main" in said
    assert "PORT" not in said
    file = service.read_service(tmp_path)
    assert str(file.service.start) == recipe.start
    assert recipe.build in str(file.service.build)
    assert file.service.env == recipe.env
    assert file.request[0].path == recipe.path


@pytest.mark.recipe
@pytest.mark.timeout(LIMIT + 60)
@pytest.mark.needs("cargo", ">=1.85")
@pytest.mark.parametrize("recipe", [*NATIVE, pytest.param(DOCKER_COMPOSE, marks=pytest.mark.docker)], ids=name_of)
def test_recipe_finds_its_slowdown_in_ten_minutes(recipe: Recipe, tmp_path: Path) -> None:
    if missing := [tool for tool in recipe.needs if shutil.which(tool) is None]:
        pytest.skip(f"{NOT_JUDGED}{', '.join(missing)} is missing")
    tmp_path.chmod(0o755)
    folder = tmp_path / "shop"
    recipe.write(folder)
    git(tmp_path, "init", "-q", "-b", "main", "shop")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "a shop")
    recipe.slow_down(folder)
    git(folder, "commit", "-q", "-a", "-m", "a slow shop")
    started_at = time.monotonic()
    assert tfb("init", cwd=folder).returncode == Exit.OK
    completed = tfb("compare", "--base", "HEAD~1", "--time", "2m", "--yes", "--json", seconds=LIMIT, cwd=folder)
    print(f"{recipe.stack}: verdict after {time.monotonic() - started_at:.0f} s")
    document = json.loads(completed.stdout)
    (request,) = document["requests"]
    assert "values" in request, completed.stdout + completed.stderr
    base, head = request["values"]
    assert head > 1.1 * base
    if "have valid trials" in str(request["reason"]):
        assert completed.returncode == Exit.CANNOT_TELL
        pytest.skip(f"{NOT_JUDGED}{request['reason']}")
    assert (completed.returncode, document["verdict"]) == (Exit.FAILED, "slower"), completed.stdout + completed.stderr
