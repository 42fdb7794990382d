"""Tests for the checks: single checks, and all checks against the rogues (deliberately wrong servers)."""
