"""Tests of the checks: each check on its own, and all checks against the rogues (deliberately wrong servers)."""
