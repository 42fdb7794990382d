"""The order service: a test type whose load is arrivals of use cases."""
