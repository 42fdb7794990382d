"""Plaintext: a constant body, requested in pipelines of 16."""

from harness.plan.testtypes import ACCEPT_PLAIN, TestType

PLAINTEXT = TestType(
    name="plaintext",
    url_key="plaintext_url",
    accept=ACCEPT_PLAIN,
    answer="greeting",
    sweep="pipeline",
    minimum_url_length=10,
)
