"""The dashboard: a read-only ASGI server for results/, and its web page."""
