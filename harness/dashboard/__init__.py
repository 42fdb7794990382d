"""The dashboard, which consists of a web page and a read-only ASGI server for results/."""
