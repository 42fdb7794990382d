"""Reads the byte counters of a load generator's sockets with sock_diag(7).

The kernel returns ``struct tcp_info`` for each socket. The number of responses is the sum of ``tcpi_bytes_received``
divided by the size of a response. The number of requests follows from ``tcpi_bytes_acked`` in the same way.

``toolset/meter`` copies this module into an image without third-party packages.
"""

import contextlib
import socket
import struct
from dataclasses import dataclass

NETLINK_SOCK_DIAG = 4
SOCK_DIAG_BY_FAMILY = 20
NLM_F_REQUEST_DUMP = 0x001 | 0x300
NLMSG_ERROR, NLMSG_DONE = 2, 3
INET_DIAG_INFO = 2
TCP_ESTABLISHED = 1
# Offset of bytes_acked in struct tcp_info, after 8 bytes of flags, 24 u32 fields and two u64 pacing rates.
BYTES_ACKED = 120
DIAG_MESSAGE = 72  # size of struct inet_diag_msg
HEADER = struct.Struct("=LHHLL")
ATTRIBUTE = struct.Struct("=HH")
COUNTERS = struct.Struct("=QQ")  # bytes acknowledged, bytes received
# True: compare the source port, False: compare the destination port -> opcodes of the filter for (at least, at most).
COMPARISON_CODES = {False: (4, 5), True: (2, 3)}


@dataclass(frozen=True, kw_only=True)
class SocketCounters:
    """The number of established connections to a port, and the bytes that clients have received and sent."""

    connections: int
    bytes_received: int
    bytes_sent: int = 0  # bytes that the server's kernel has acknowledged


class SocketMeter:
    """A meter for TCP connections to a port. If ``served`` is set, this machine is the server, otherwise the client.

    The sums include the last values of closed connections. Port 0 disables metering.
    """

    def __init__(self, port: int, *, served: bool = False) -> None:
        self.port, self.served = port, served
        self._bytes: dict[bytes, tuple[int, int]] = {}  # socket cookie -> (bytes sent, bytes received) by the client
        self._netlink: socket.socket | None = None
        if not port:
            return  # metering is disabled
        with contextlib.suppress(OSError, AttributeError):
            self._netlink = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_SOCK_DIAG)
            self._netlink.settimeout(1.0)
            self._netlink.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)

    def read(self) -> SocketCounters | None:
        """Return the counters, or None if the kernel does not provide them."""
        if self._netlink is None:
            return None
        established = 0
        try:
            for family in (socket.AF_INET, socket.AF_INET6):
                established += self._dump(self._netlink, family)
        except OSError:
            self.close()
            return None
        sent, received = (sum(counts) for counts in zip(*self._bytes.values(), strict=True)) if self._bytes else (0, 0)
        return SocketCounters(connections=established, bytes_received=received, bytes_sent=sent)

    def _dump(self, netlink: socket.socket, family: int) -> int:
        """Update the counters for an address family. Return the number of established connections."""
        # struct inet_diag_req_v2 has the fields family, protocol, extensions, padding, states and id. The id consists
        # of ports, addresses, interface and cookie. A dump ignores the ports in the id, so the bytecode selects the
        # port.
        identity = struct.pack(">HH", 0, 0) + bytes(32) + struct.pack("=L", 0) + b"\xff" * 8
        request = struct.pack("=BBBBL", family, socket.IPPROTO_TCP, 1 << (INET_DIAG_INFO - 1), 0, 1 << TCP_ESTABLISHED)
        payload = request + identity + _port_filter(self.port, COMPARISON_CODES[self.served])
        netlink.send(HEADER.pack(16 + len(payload), SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST_DUMP, 1, 0) + payload)
        established = 0
        while True:
            data = netlink.recv(1 << 18)
            offset = 0
            while offset + 16 <= len(data):
                length, kind, _, _, _ = HEADER.unpack_from(data, offset)
                if kind == NLMSG_DONE:
                    return established
                if kind == NLMSG_ERROR:
                    raise OSError("sock_diag refused the request")
                if counters := _byte_counters(data, offset + 16, offset + length):
                    cookie, acknowledged, received = counters
                    sent = max(0, acknowledged - 1)  # the kernel counts the client's SYN as a byte
                    self._bytes[cookie] = (received, acknowledged) if self.served else (sent, received)
                    established += 1
                offset += (length + 3) & ~3

    def close(self) -> None:
        """Close the netlink socket."""
        if self._netlink is not None:
            self._netlink.close()
            self._netlink = None


def _port_filter(port: int, codes: tuple[int, int]) -> bytes:
    """Return a kernel filter (INET_DIAG_REQ_BYTECODE) that accepts only the sockets of a port.

    Each instruction has an opcode and two jump offsets, for a true and a false comparison. A jump to four bytes past
    the end rejects the socket.
    """
    (at_least, at_most), no_op = codes, 0
    code = struct.pack("=BBH", at_least, 8, 20) + struct.pack("=BBH", no_op, 0, port)
    code += struct.pack("=BBH", at_most, 8, 12) + struct.pack("=BBH", no_op, 0, port)
    return ATTRIBUTE.pack(4 + len(code), 1) + code


def _byte_counters(data: bytes, start: int, end: int) -> tuple[bytes, int, int] | None:
    """Return (cookie, bytes acknowledged, bytes received) of a socket, or None if the kernel is too old."""
    cookie = data[start + 44 : start + 52]
    offset = start + DIAG_MESSAGE
    while offset + 4 <= end:
        length, kind = ATTRIBUTE.unpack_from(data, offset)
        if kind == INET_DIAG_INFO and length >= 4 + BYTES_ACKED + COUNTERS.size:
            acknowledged, received = COUNTERS.unpack_from(data, offset + 4 + BYTES_ACKED)
            return cookie, acknowledged, received
        offset += (length + 3) & ~3 if length >= 4 else 4
    return None
