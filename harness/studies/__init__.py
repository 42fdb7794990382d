"""Studies: programs that reproduce figures of the documentation."""
