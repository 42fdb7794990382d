"""Stand-ins for base images on a machine that no registry answers."""
