"""The plugins that are part of tfb. pyproject.toml declares their entry points, and the core does not import them."""
