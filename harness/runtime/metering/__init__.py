"""Readings of what processes, cgroups and sockets have used: plain counters, cheap enough to read under load."""
