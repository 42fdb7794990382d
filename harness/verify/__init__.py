"""Verification: gathers evidence about a server, judges it by checks, and verifies responses under load."""
