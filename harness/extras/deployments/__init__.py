"""Several deployments, each of machines of its own: one run of the runs that were made on them."""
