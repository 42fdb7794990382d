"""Tests for the checks: individual checks, and all checks against the rogues (deliberately wrong servers)."""
