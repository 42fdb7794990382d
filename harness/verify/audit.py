"""Judges an audited sample: turns the generator's account and the answers that it wrote out into evidence."""

import base64
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from harness.errors import LoadError
from harness.plan.discovery import Rules
from harness.plan.testtypes import TestType
from harness.records.models import CheckResult, Load
from harness.runtime import DatabaseAddress
from harness.verify import verification
from harness.verify.checks.evidence import Audit, Evidence, Exchange, Version, World
from harness.verify.checks.tables import tables
from harness.verify.meanwhile import Meanwhile
from harness.verify.wire import BODY_LIMIT, Response

NS = 1e-9
WATCH = -1  # the number of the watch's connection: the generator counts its own from 0
MOST_LINE = 4 * BODY_LIMIT  # characters of one line: base64 of the longest body, and its headers
JUDGED_ROWS = 60_000  # rows of the answers that are looked at: more would take longer than the load itself


def share(test_type: TestType, level: Load, expected_responses: float) -> float:
    """Share of the answers to look at: all of update, held against the table; of the others what can be judged."""
    if test_type.writes_database:
        return 1.0
    rows = level.queries or (13 if test_type.name == "fortune" else 1)
    wanted = min(JUDGED_ROWS / rows, 3_000.0)
    return 1.0 if expected_responses <= wanted else wanted / expected_responses


class AuditEvidence:
    """What the database holds before the load, and the judgement once it is over."""

    def __init__(
        self,
        test_type: TestType,
        url: str,
        level: Load,
        database: DatabaseAddress | None,
        *,
        rules: Rules = "tfb",
    ) -> None:
        self._type = test_type
        self._rules = rules
        self._url = url
        self._case = verification.PLAIN if level.queries is None else verification.rows(level.queries)
        self._target = test_type.path(url, level)
        self._database = database if test_type.reads_database else None
        self._before = self._world()
        self._offset = _offset()

    def judge(
        self,
        account: Audit,
        answers: Path,
        *,
        whole: bool,
        beside: Sequence[Exchange] = (),
        meanwhile: Meanwhile | None = None,
    ) -> tuple[CheckResult, ...]:
        """All checks that hold; ``answers`` is the generator's sample file, ``whole`` that nothing is missing in it.

        ``beside`` is what a watch was answered meanwhile: it has written rows, too, where the test type does;
        ``meanwhile`` what the harness did to the tables.

        Raises LoadError for a file that is not as documented.
        """
        evidence = Evidence(
            test_type=self._type.name,
            url=self._url,
            rules=self._rules,
            thorough=False,
            under_load=True,
            audit=account,
        )
        evidence.crowd = list(self._exchanges(answers))
        evidence.crowd += [replace(exchange, connection=WATCH) for exchange in beside]
        whole = whole and all(exchange.ok for exchange in beside)
        if self._database:
            with tables(self._database) as view:
                if self._type.name == "fortune":
                    evidence.fortunes = view.fortunes()
                    evidence.fortune_versions = meanwhile.fortunes if meanwhile else ()
                elif self._type.writes_database:
                    after = view.settle()
                    if whole:
                        evidence.before = evidence.between = self._before
                    evidence.after = after if whole else None
                    evidence.looks = meanwhile.looks if meanwhile and whole else ()
                else:
                    changed = meanwhile.versions if meanwhile else []
                    evidence.versions = changed or [Version(world=view.world())]
        return verification.judge(evidence)

    def _world(self) -> World | None:
        if self._database is None or not self._type.writes_database:
            return None
        with tables(self._database) as view:
            return view.settle()

    def _exchanges(self, answers: Path) -> Iterator[Exchange]:
        # A clock that was set in between makes times of day uncertain by as much: no server pays for that.
        offsets = sorted((self._offset, _offset()))
        with answers.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                if len(line) > MOST_LINE:
                    raise LoadError(f"{answers.name} line {number}: longer than any answer may be")
                yield self._exchange(line, number, answers, *offsets)

    def _exchange(self, line: str, number: int, answers: Path, least: float, most: float) -> Exchange:
        try:
            entry = json.loads(line)
            headers = tuple((str(name), str(value)) for name, value in entry["headers"])
            names = {name.lower() for name, _ in headers}
            response = Response(
                version="1.1",
                status=int(entry["status"]),
                reason="",
                headers=headers,
                body=base64.b64decode(entry["body_base64"], validate=True),
                size=int(entry["size_bytes"]),
                framing="chunked" if "transfer-encoding" in names else "content-length",
            )
            return Exchange(
                case=self._case,
                target=self._target,
                sent_at=least + int(entry["sent_ns"]) * NS,
                received_at=most + int(entry["received_ns"]) * NS,
                connection=int(entry["connection"]),
                response=response,
            )
        except (ValueError, KeyError, TypeError) as error:
            raise LoadError(
                f"{answers.name} line {number}: not an answer as the generator writes it: {error}"
            ) from error


def _offset() -> float:
    """From the clock of the generator, which counts from the machine's start, to the time of day."""
    # The narrowest of some looks: between the two clocks this process may have to wait.
    return max(time.time() - time.monotonic() for _ in range(5))
