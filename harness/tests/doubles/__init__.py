"""Test doubles: a reference server that meets all requirements, and rogues that each violate one of them."""
