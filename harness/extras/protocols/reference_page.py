"""Generates docs/reference/protocols.md from page.md and the registered test types."""

from pathlib import Path

from harness.paths import REPOSITORY
from harness.plan.testtypes.registry import TEST_TYPES

TEMPLATE = Path(__file__).with_name("page.md")
PAGE = REPOSITORY / "docs" / "reference" / "protocols.md"
REQUESTS = {  # test type -> (example URL in benchmark_config.json, description of the request)
    "json-items": ("/json/", "`GET /json/{count}?m={m}` with `count` from 1 to 50 and `m` from 1 to 1,000"),
    "json-compressed": ("/json/", "as json-items, but with `Accept-Encoding: gzip, br`"),
    "json-tls": ("/json/", "as json-items, but over TLS 1.3"),
    "http2": ("/json/", "as json-tls, but over HTTP/2"),
    "http2-cleartext": ("/json/", "as json-items, but over HTTP/2 without TLS"),
    "websocket": ("/ws", "an upgrade, then messages that the server echoes"),
    "short-lived": ("/plaintext", "as hello"),
    "static": (
        "/static/",
        "`GET /static/{name}` with `Accept-Encoding: br;q=1, gzip;q=0.8`; a tenth of the requests are conditional",
    ),
    "upload": ("/upload", "`POST /upload`, 1 kB to 1 MB of binary data; half of the bodies are chunked"),
}


def render() -> str:
    """Return the page as Markdown."""
    rows = []
    for name, (url, request) in REQUESTS.items():
        kind = TEST_TYPES[name]
        loads = ", ".join(f"`{load.label}`" for load in kind.fixed_loads)
        port = f"`{kind.port_variable or 'PORT'}`"
        rows.append(f'| `{name}` | `"{kind.url_key}": "{url}"` | {request} | {loads} | {port} |')
    return TEMPLATE.read_text(encoding="utf-8").format(rows="\n".join(rows))


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
