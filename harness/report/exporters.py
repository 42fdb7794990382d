"""The explicit list of exporters, by the name that ``--format`` takes."""

from harness.report import Exporter, csv, html, json, latency, markdown, orders, techempower, terminal

EXPORTERS: dict[str, Exporter] = {
    "text": terminal,
    "markdown": markdown,
    "csv": csv,
    "latency-csv": latency,
    "orders-csv": orders,
    "json": json,
    "html": html,
    "techempower": techempower,
}
