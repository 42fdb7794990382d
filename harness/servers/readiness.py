"""Waits for a server's first good answer: the same for processes and containers."""

import http.client
import time
from collections.abc import Callable

from harness.errors import StartError
from harness.servers import Endpoint

READY_SECONDS = 60.0
INTERVAL = 0.01


def first_answer(endpoint: Endpoint, path: str, began: float, require_alive: Callable[[], None]) -> float:
    """Seconds from ``began`` (time.monotonic) to the first 200 on ``path``.

    Raises what ``require_alive`` raises when the server is gone, and StartError, with its last answer, when it does not
    answer 200 in time.
    """
    last = "no connection was accepted; does it listen on the port that PORT names?"
    while time.monotonic() - began < READY_SECONDS:
        require_alive()
        try:
            connection = http.client.HTTPConnection(endpoint.host, endpoint.port, timeout=5)
            try:
                connection.request("GET", path)
                response = connection.getresponse()
                body = response.read(300)
            finally:
                connection.close()
            if response.status == http.client.OK:
                return time.monotonic() - began
            last = f"its last answer to {path} was {response.status} {body.decode(errors='replace')!r}"
        except TimeoutError:
            last = f"it accepted a connection but did not answer {path} within 5 s"
        except (OSError, http.client.HTTPException) as error:
            if not isinstance(error, ConnectionRefusedError):
                last = f"its answer to {path} could not be read: {error!r}"
        time.sleep(INTERVAL)
    raise StartError(f"no good answer within {READY_SECONDS:.0f} s: {last}")
