"""Documents are made in another process, whose end is survived."""

import os
import signal
import socket
from multiprocessing import Pipe
from pathlib import Path

import pytest

from harness.dashboard.apart import Apart, answer_all
from harness.dashboard.documents import RunDocument
from harness.dashboard.making import Made, Making, Wanted, signature_of
from harness.dashboard.runs import no_answers
from harness.errors import StoreError


class Maker:
    """Makes a document of one folder, and says of others what is wrong."""

    def __init__(self, known: Path) -> None:
        self.known = known

    def make(self, wanted: Wanted) -> Made:
        if wanted.folder == self.known:
            return Made(signature=(), running=True, lead="es4x")
        if wanted.document:
            raise StoreError(f"{wanted.folder.name}: not there")
        raise LookupError("key")

    def close(self) -> None:
        """Nothing was started."""


def test_questions_are_answered_in_order_errors_too_until_nobody_asks(tmp_path: Path) -> None:
    questions, theirs = Pipe(duplex=True)
    questions.send(Wanted(folder=tmp_path))
    questions.send(Wanted(folder=tmp_path / "gone", document=True))
    questions.send(Wanted(folder=tmp_path / "odd"))
    with socket.socket(fileno=os.dup(questions.fileno())) as end:
        end.shutdown(socket.SHUT_WR)  # no more is asked; answers are still read
    answer_all(theirs, Maker(tmp_path))
    made, gone, odd = questions.recv(), questions.recv(), questions.recv()
    assert (made.lead, made.running) == ("es4x", True)
    assert (type(gone), str(gone)) == (StoreError, "gone: not there")
    assert (type(odd), str(odd)) == (ValueError, "LookupError: key")


@pytest.mark.e2e
def test_a_process_that_was_killed_is_started_again_and_closing_ends_it(results: Path) -> None:
    folder = results / "run"
    wanted = Wanted(folder=folder, document=True, tests=True, latency=True)
    apart = Apart(None, no_answers)
    try:
        here = Making(None, no_answers).make(wanted)
        assert apart.make(wanted) == here
        assert here.document is not None
        assert RunDocument.model_validate_json(here.document.plain).run.run_id == "run"
        assert here.signature == signature_of(folder)
        process = apart._process
        assert process is not None
        assert process.pid is not None
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        assert apart.make(wanted) == here
        with pytest.raises(StoreError, match=r"run\.json: not there"):
            apart.make(Wanted(folder=results / "nothing", document=True))
    finally:
        second = apart._process
        apart.close()
    assert second is not None
    assert second.exitcode is not None
    with pytest.raises(StoreError, match="has been ended"):
        apart.make(wanted)
