"""Runs trials with the real load generator and verifies the responses."""

import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from harness.experiment.generators import RESPONSES_FILE, LoadRun
from harness.experiment.generators.loadgen import Loadgen
from harness.provisioning import crates
from harness.records.trial_record import TrialEvidence
from harness.runtime import endpoint_of
from harness.verify.trial import TrialVerification

WITH_GENERATOR = [
    pytest.mark.e2e,
    pytest.mark.timeout(900),  # the first test also builds the generator
    pytest.mark.skipif(shutil.which("cargo") is None, reason="cargo is not installed"),
]


def verify_load(trial: TrialVerification, *, written: bool = True) -> tuple[TrialEvidence, float]:
    """Run a trial with the real generator. Return the evidence and the requests per second.

    Unless ``written`` is set, the generator records no responses.
    """
    context = trial.context
    server, test_type = context.server, context.test_type
    generator = Loadgen(binary=str(crates.loadgen_program()), chrt=None)
    with tempfile.TemporaryDirectory() as folder:
        with trial:
            run = LoadRun(
                url=endpoint_of(server, test_type).url(
                    test_type.request_target(server.implementation.urls[test_type.name], context.load)
                ),
                host="localhost",
                accept=test_type.accept,
                load=context.load,
                seconds=context.seconds,
                threads=1,
                seed=context.seed,
                sampling=trial.sampling,
                protocol=test_type.protocol,
                tls_fixed=test_type.tls,
                requests=trial.requests,
                use_cases=test_type.use_cases,
            )
            command = [generator.program, *generator.arguments(run, Path(folder))]
            completed = subprocess.run(command, input="go\n", capture_output=True, text=True, check=True)
        result = generator.result(run, completed.stdout)
        assert result.account is not None
        evidence = trial.judge(
            good=result.account.successes,
            failed=result.account.failed,
            counts=result.account if written else None,
            responses_file=Path(folder) / RESPONSES_FILE if written else None,
        )
    return evidence, result.requests / context.seconds
