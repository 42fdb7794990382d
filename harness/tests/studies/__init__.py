"""Tests for harness.studies."""
