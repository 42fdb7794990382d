"""The dashboard: a web page, and a read-only ASGI server for results/."""
