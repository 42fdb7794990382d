"""The dashboard: a web page, and a read-only ASGI server for the runs in results/."""
