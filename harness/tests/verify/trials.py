"""A load of the real generator, and what is objected to in it."""

import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from harness.experiment.generators import RESPONSES_FILE, LoadRun
from harness.experiment.generators.loadgen import Loadgen
from harness.plan.testtypes import TestType
from harness.provisioning import crates
from harness.records.loads import Load
from harness.records.trial_record import TrialEvidence
from harness.runtime import Server
from harness.verify.trial import TrialAudit

WITH_GENERATOR = [
    pytest.mark.e2e,
    pytest.mark.timeout(900),  # the first of them builds the generator
    pytest.mark.skipif(shutil.which("cargo") is None, reason="cargo is not on this machine"),
]


def audited(
    server: Server,
    kind: TestType,
    load: Load,
    looking: TrialAudit,
    *,
    seconds: float,
    seed: int,
    written: bool = True,
) -> tuple[TrialEvidence, float]:
    """What is objected to in one trial of the real generator, and its requests per second."""
    generator = Loadgen(binary=str(crates.loadgen_program()), chrt=None)
    with tempfile.TemporaryDirectory() as folder:
        with looking:
            run = LoadRun(
                url=server.endpoint.url(kind.path(server.implementation.urls[kind.name], load)),
                host="localhost",
                accept=kind.accept,
                load=load,
                seconds=seconds,
                threads=1,
                seed=seed,
                sampling=looking.sampling,
                use_cases=kind.use_cases,
                requests=kind.requests,
            )
            command = [generator.program, *generator.arguments(run, Path(folder))]
            done = subprocess.run(command, input="go\n", capture_output=True, text=True, check=True)
        result = generator.result(run, done.stdout)
        assert result.account is not None
        evidence = looking.judge(
            good=result.account.successes,
            failed=result.account.failed,
            account=result.account if written else None,
            answers=Path(folder) / RESPONSES_FILE if written else None,
        )
    return evidence, result.requests / seconds
