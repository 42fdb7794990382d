"""Whether answers are true: evidence, checks, the probe under load."""
