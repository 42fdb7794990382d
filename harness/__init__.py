"""tfb: builds, verifies, measures and ranks web-framework implementations."""
