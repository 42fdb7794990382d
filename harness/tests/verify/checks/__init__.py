"""Tests of the checks: each alone, and all of them against the rogues' gallery."""
