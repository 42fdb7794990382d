"""Verifies servers: gathers evidence about a server, and runs checks on the evidence."""
