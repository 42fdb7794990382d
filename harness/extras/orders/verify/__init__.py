"""Verification of the order service: registered with the core by ``harness.verify.checks.registry`` alone."""
