"""Plugins that tfb includes. pyproject.toml declares their entry points, and the core never imports them."""
