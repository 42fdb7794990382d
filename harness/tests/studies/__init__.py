"""Tests of harness.studies."""
