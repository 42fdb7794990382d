"""Shipped test doubles: a reference server that follows every requirement, and rogues that break one each."""
