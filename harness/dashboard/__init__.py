"""The dashboard: a read-only ASGI server over results/ and the web page that it serves."""
