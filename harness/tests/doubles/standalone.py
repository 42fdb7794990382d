"""Writes implementation folders that need only Python.

Tests of installed copies of tfb use them, because an installed copy lacks this package's servers.
"""

import json
from pathlib import Path

SERVER = """
import asyncio, json, os, time

PAGES = {b"/json": "application/json", b"/plaintext": "text/plain"}


async def serve(reader, writer):
    try:
        while True:
            head = await reader.readuntil(b"\\r\\n\\r\\n")
            method, target, version = head.split(b"\\r\\n", 1)[0].split(b" ")
            path = b"/" + target.partition(b"://")[2].partition(b"/")[2] if b"://" in target else target
            kind = PAGES.get(path.partition(b"?")[0]) if method in (b"GET", b"HEAD") else None
            body = json.dumps({"message": "Hello, World!"}) if kind == "application/json" else "Hello, World!"
            lines = [
                f"HTTP/1.1 {'200 OK' if kind else '404 Not Found'}",
                f"Content-Type: {kind or 'text/plain'}",
                f"Content-Length: {len(body)}",
                "Server: standalone",
                f"Date: {time.strftime('%a, %d %b %Y %H:%M:%S GMT', time.gmtime())}",
                "",
                "" if method == b"HEAD" else body,
            ]
            writer.write("\\r\\n".join(lines).encode())
            await writer.drain()
            if b"connection: close" in head.lower():
                break
    except (ValueError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        pass
    finally:
        writer.close()


async def main():
    server = await asyncio.start_server(serve, os.environ["HOST"], int(os.environ["PORT"]))
    await server.serve_forever()


asyncio.run(main())
"""


def write_implementations(frameworks: Path, *names: str) -> None:
    """Create a folder below ``frameworks`` for each named implementation."""
    for name in names:
        folder = frameworks / "Python" / name
        folder.mkdir(parents=True)
        (folder / "server.py").write_text(SERVER, encoding="utf-8")
        entry = {
            "json_url": "/json", "plaintext_url": "/plaintext", "language": "Python", "database": "None",
            "local": {"requires": {"python3": ">=3.11"}, "run": ["python3", "server.py"]},
        }  # fmt: skip
        document = {"framework": name, "tests": [{"default": entry}]}
        (folder / "benchmark_config.json").write_text(json.dumps(document), encoding="utf-8")
