"""The explicit list of exporters, by the name that ``--format`` takes."""

from harness.report import Exporter, csv, html, json, markdown, techempower, terminal

EXPORTERS: dict[str, Exporter] = {
    "text": terminal,
    "markdown": markdown,
    "csv": csv,
    "json": json,
    "html": html,
    "techempower": techempower,
}
