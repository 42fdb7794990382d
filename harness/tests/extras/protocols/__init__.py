"""Tests for the plugin ``protocols``."""
