"""Verification of servers: gathers evidence about a server, and judges the evidence with checks."""
