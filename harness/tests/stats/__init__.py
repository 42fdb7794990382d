"""Tests for harness.stats."""
