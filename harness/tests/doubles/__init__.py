"""Test doubles: a reference server that meets every requirement, and rogues that each violate a requirement."""
