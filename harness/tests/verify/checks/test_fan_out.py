"""Upstream calls are compared with the responses, even if only a sample of the responses is recorded."""

from dataclasses import fields
from typing import Any

from harness.runtime import UpstreamStats
from harness.tests.verify.subjects import exchange
from harness.verify.checks.evidence import Evidence, RequestCounts
from harness.verify.checks.fan_out import upstream_called


def judged(stats: UpstreamStats, *sums: int, answers: int | None = None, took: float = 0.006) -> bool:
    """Return whether responses with these sums and 20 calls each pass.

    If they are a sample, ``answers`` is the number of all responses.
    """
    counts: dict[str, Any] = {one.name: 0 for one in fields(RequestCounts)}
    account = RequestCounts(**counts | {"successes": answers, "statuses": {}}) if answers else None
    crowd = [exchange(f'{{"calls":20,"sum":{total}}}', target="/x?calls=20", received_at=took) for total in sums]
    evidence = Evidence(
        test_type="fan-out", concurrent=crowd, request_counts=account, complete=answers is None, upstream=stats
    )
    return not list(upstream_called.find(evidence))


def test_samples_compare_only_the_least_number_of_calls() -> None:
    for calls, total, passes in ((40, 300, True), (39, 300, False), (41, 300, False), (40, 301, False)):
        assert judged(UpstreamStats(calls=calls, sum=total), 100, 200) is passes
    for calls, passes in ((100, True), (140, True), (99, False)):
        assert judged(UpstreamStats(calls=calls, sum=900), 100, 200, answers=5) is passes


def test_responses_before_the_upstream_s_delay_fail() -> None:
    made = UpstreamStats(calls=20, sum=100, delay_seconds=0.005)
    assert [judged(made, 100, took=took) for took in (0.0052, 0.0041, 0.003)] == [True, True, False]
