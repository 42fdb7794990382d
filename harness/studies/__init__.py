"""Programs that reproduce numbers in the documentation."""
