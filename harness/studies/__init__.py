"""Studies: figures that the docs cite, each by a command of its own."""
