"""Tests of the plugin for protocols and payloads."""
