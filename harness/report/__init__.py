"""Renderings of one ranking: the terminal, Markdown, CSV, JSON, HTML, and TechEmpower's results.json. One file each."""
