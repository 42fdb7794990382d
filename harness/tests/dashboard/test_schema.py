"""Tests for the page's lock file. `npm run types:check` compares the page's types with the models."""

import json

from harness.dashboard.build import WEB


def test_no_lock_file_names_where_packages_come_from() -> None:
    lock = json.loads((WEB / "package-lock.json").read_text(encoding="utf-8"))
    assert all("resolved" not in package for package in lock["packages"].values())
    assert all("integrity" in package for name, package in lock["packages"].items() if name)
