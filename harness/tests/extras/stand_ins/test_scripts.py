"""What stands in for package clients in stand-ins: run with fakes of the programs that they call."""

import os
import subprocess
from pathlib import Path

import pytest

from harness.extras.stand_ins.make import SCRIPTS

CPANFILE = """requires 'perl', '5.020';
requires 'Mojolicious', '9.42';
requires "Mojo::Pg";
requires 'Scalar::Util';
#requires 'DBD::mysql';
recommends 'IO::Socket::IP';
"""


def _program(folder: Path, name: str, body: str) -> None:
    file = folder / name
    file.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
    file.chmod(0o755)


@pytest.fixture
def fakes(tmp_path: Path) -> Path:
    """Programs before the machine's own on PATH; ``asked`` beside them holds what was installed."""
    folder = tmp_path / "bin"
    folder.mkdir()
    _program(folder, "apt-cache", "case $2 in lib*carton-perl) exit 100 ;; carton) echo 'Section: perl' ;; esac")
    _program(folder, "apt-get", f'[ "$1" = update ] || echo "$@" >>{tmp_path}/asked')
    _program(folder, "timeout", "exit 1")  # CPAN is not reached
    return folder


def _run(fakes: Path, script: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PATH": f"{fakes}:{os.environ['PATH']}", "HOME": str(fakes)}
    return subprocess.run(
        [str(script), *words], cwd=fakes.parent, env=environment, capture_output=True, text=True, check=False
    )


def _asked(fakes: Path) -> list[str]:
    words = (fakes.parent / "asked").read_text(encoding="utf-8").split()
    return [word for word in words if word not in ("install", "-y", "--no-install-recommends")]


def test_modules_come_as_debians_packages_and_what_perl_has_is_not_asked_for(fakes: Path) -> None:
    done = _run(fakes, SCRIPTS / "cpanm", "--notest", "-l", "/x", "Mojo::Pg", "JSON::XS@4.03", "Scalar::Util", "Carton")
    assert done.returncode == 0, done.stderr
    assert _asked(fakes) == ["libmojo-pg-perl", "libjson-xs-perl", "carton"]
    assert "of Debian's for 4.03" in done.stderr


def test_carton_installs_what_its_file_requires_and_runs_commands(fakes: Path) -> None:
    carton = fakes / "carton"
    carton.symlink_to(SCRIPTS / "cpanm")
    (fakes.parent / "modules").write_text(CPANFILE, encoding="utf-8")
    done = _run(fakes, carton, "install", "--cpanfile", "modules")
    assert done.returncode == 0, done.stderr
    assert _asked(fakes) == ["libmojolicious-perl", "libmojo-pg-perl"]
    assert _run(fakes, carton, "exec", "echo", "a b").stdout == "a b\n"


PLUGINS = """addSbtPlugin("com.eed3si9n" % "sbt-assembly" % "0.14.6")
addSbtPlugin("com.typesafe.sbt"   % "sbt-twirl" % "1.5.1")
addSbtPlugin("com.eed3si9n" % "sbt-assembly" % "2.3.1")
addSbtPlugin("io.spray" % "sbt-revolver" % "0.9.1")
"""


def test_a_plugin_of_sbts_own_archive_is_one_of_maven_central_instead_and_said(fakes: Path) -> None:
    _program(fakes, "java", 'echo "$@"')
    project = fakes.parent / "project"
    project.mkdir()
    (project / "plugins.sbt").write_text(PLUGINS, encoding="utf-8")
    done = _run(fakes, SCRIPTS / "sbt", "-batch", "-Dx=y", "-J-Xmx1g", "clean", "assembly")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[:3] == ["-Dsbt.override.build.repos=true", "-Dx=y", "-Xmx1g"]
    assert done.stdout.split()[-2:] == ["clean", "assembly"]
    assert (project / "plugins.sbt").read_text(encoding="utf-8").splitlines() == [
        'addSbtPlugin("com.eed3si9n" % "sbt-assembly" % "1.2.0")',
        'addSbtPlugin("com.typesafe.play"   % "sbt-twirl" % "1.6.1")',
        'addSbtPlugin("com.eed3si9n" % "sbt-assembly" % "2.3.1")',
        'addSbtPlugin("io.spray" % "sbt-revolver" % "0.9.1")',
    ]
    assert "sbt-assembly 1.2.0 of com.eed3si9n for what project/plugins.sbt asks for" in done.stderr
    assert _run(fakes, SCRIPTS / "sbt", "clean").stderr == ""  # once
