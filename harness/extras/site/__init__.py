"""Rounds (sets of runs published together) as static pages that any file host serves."""
