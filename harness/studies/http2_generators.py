"""Compares loadgen with h2load, and with the crate h2 on a tokio runtime, by responses per CPU second.

Usage: ``python -m harness.studies.http2_generators [rounds]``. The generators load the same server (nghttpd) in turn.
The study requires cargo, openssl, and the Debian packages nghttp2-client and nghttp2-server. The
crate h2 is measured only without TLS.
"""

import os
import re
import resource
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from harness.extras.protocols.certificates import FILES, write_certificate
from harness.paths import TOOLSET, state_folder
from harness.provisioning import crates
from harness.runtime.database.embedded import free_port

SECONDS = 2
BODY_BYTES = 2_000
LOADS = ((16, 16), (64, 32))  # (connections, streams per connection)
SUCCEEDED = re.compile(r'"successes":(\d+)|(\d+) succeeded')


def per_cpu_second(words: Sequence[str]) -> float:
    """Run a generator. Return the number of successful responses per second of CPU time (user and system)."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    output = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60).stdout
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    counts = [int(first or second) for first, second in SUCCEEDED.findall(output)]
    return max(counts) / used


def main() -> None:
    """Print the generators' median rates, and the median and range of the ratios."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    loadgen = str(crates.loadgen_program())
    h2_client = _build_h2_client()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_certificate(folder)
        (folder / "index.html").write_text("x" * BODY_BYTES)
        for scheme, options in (
            ("http", ["--no-tls"]),
            ("https", []),
        ):
            port = free_port()
            keys = [str(folder / FILES[each]) for each in ("TLS_KEY", "TLS_CERT")] if scheme == "https" else []
            command = ["nghttpd", "-n1", "-d", name, *options, str(port), *keys]
            with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
                _wait_for(port)
                url = f"{scheme}://127.0.0.1:{port}/index.html"
                for connections, streams in LOADS:
                    numbers = ["-c", str(connections), "-m", str(streams), "-t", "1", "-D", str(SECONDS)]
                    own = [loadgen, "--start-at-once", "--protocol", "http2", "--duration", str(SECONDS)]
                    own += ["--connections", str(connections), "--depth", str(streams), "--linger-seconds", "0", url]
                    others = {"h2load": ["h2load", *numbers, url]}
                    if scheme == "http":
                        address = f"127.0.0.1:{port}"
                        load = [str(connections), str(streams), str(SECONDS)]
                        others["h2"] = [h2_client, address, "/index.html", *load]
                    _compare(f"{scheme} {connections} x {streams}", own, others, rounds)
                server.terminate()


def _build_h2_client() -> str:
    """Build the client that uses the crate h2, and return its path. Raises SystemExit if the build fails."""
    target = state_folder() / "h2_client"
    manifest = str(TOOLSET / "loadgen" / "Cargo.toml")
    command = ["cargo", "build", "--release", "--locked", "--example", "h2_client", "--manifest-path", manifest]
    if subprocess.run([*command, "--target-dir", str(target)], check=False).returncode:
        raise SystemExit("cargo cannot build toolset/loadgen/examples/h2_client.rs. Read its messages above")
    return str(target / "release" / "examples" / "h2_client")


def _compare(load: str, own: Sequence[str], others: Mapping[str, Sequence[str]], rounds: int) -> None:
    """Measure all generators in each round, and print loadgen's ratio to each other generator."""
    measured = [
        {"loadgen": per_cpu_second(own), **{n: per_cpu_second(c) for n, c in others.items()}} for _ in range(rounds)
    ]
    for name in others:
        ratios = [each["loadgen"] / each[name] for each in measured]
        first, second = (statistics.median(each[key] for each in measured) for key in ("loadgen", name))
        print(
            f"{load}: loadgen {first:.0f}, {name} {second:.0f} per CPU second, "
            f"ratio {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
        )


def _wait_for(port: int) -> None:
    """Wait until a server listens on the port. Raises SystemExit if it does not listen within 5 s."""
    for _ in range(100):
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.05)
    load = os.getloadavg()[0]
    raise SystemExit(f"nghttpd did not listen on port {port} within 5 s (load average {load:.0f}). Try again")


if __name__ == "__main__":
    main()
