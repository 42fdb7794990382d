"""The plugins that come with tfb. pyproject.toml declares their entry points; the core does not import them."""
