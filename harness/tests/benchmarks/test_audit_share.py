"""The share of a run's time that audits take, from its log."""

import pytest

from harness.benchmarks.audit_share import Share, share

LOG = """2026-11-22 10:00:00,000 INFO tfb.workflow: preparing
2026-11-22 10:00:10,000 INFO tfb.process: start: /usr/bin/wrk -t 2 http://127.0.0.1:1/json
2026-11-22 10:00:12,500 INFO tfb.process: start: loadgen --duration 2 --sample-file /tmp/answers.jsonl
2026-11-22 10:00:13,000 INFO tfb.replicate: a line of no program
2026-11-22 10:00:15,250 INFO tfb.process: stop: pid 7 (java)
2026-11-22 10:00:30,000 INFO tfb.process: start: loadgen --duration 2 --sample-file /tmp/answers.jsonl
2026-11-22 10:00:40,000 INFO tfb.workflow: done
"""


def test_an_audit_lasts_until_the_next_program_or_the_end_of_the_run() -> None:
    assert share(LOG) == Share(audits=2, audit_seconds=12.75, run_seconds=40.0)


def test_what_is_no_log_is_told_apart_from_a_run_without_audits() -> None:
    with pytest.raises(ValueError, match="no line"):
        share("nothing\n")
