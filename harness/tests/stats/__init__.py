"""Tests of harness.stats."""
