"""What ``--version`` prints."""


def version() -> str:
    """``tfb 0.1.0, commit 1a2b3c4d5e6f, Python 3.12.1``; without the commit outside a checkout."""
    import platform
    import tomllib

    from harness.errors import EnvironmentLacksError
    from harness.host import process
    from harness.paths import INSTALLED, REPOSITORY

    number = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    try:
        found = process.run(["git", "-C", str(REPOSITORY), "rev-parse", "--short=12", "HEAD"], seconds=10)
        commit = f", commit {found.stdout.strip()}" if found.status == 0 and not INSTALLED else ""
    except EnvironmentLacksError:
        commit = ""
    return f"tfb {number}{commit}, Python {platform.python_version()}"
