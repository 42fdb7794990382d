"""Declares the plugin for protocols and payloads, such as TLS, HTTP/2, WebSocket, compression and uploads."""

from collections.abc import Mapping
from typing import ClassVar

from harness.plugins import ObjectPath, Plugin

PACKAGE = "harness.extras.protocols"


class ProtocolsPlugin(Plugin):
    """Plugin that adds the test types of the group ``protocols`` with their checks."""

    test_types: ClassVar[Mapping[str, ObjectPath]] = {
        "json-items": f"{PACKAGE}.payload_types:JSON_ITEMS",
        "json-compressed": f"{PACKAGE}.payload_types:JSON_COMPRESSED",
        "json-tls": f"{PACKAGE}.payload_types:JSON_TLS",
        "short-lived": f"{PACKAGE}.payload_types:SHORT_LIVED",
        "http2": f"{PACKAGE}.payload_types:HTTP2",
        "http2-cleartext": f"{PACKAGE}.payload_types:HTTP2_CLEARTEXT",
        "websocket": f"{PACKAGE}.payload_types:WEBSOCKET",
        "static": f"{PACKAGE}.payload_types:STATIC",
        "upload": f"{PACKAGE}.payload_types:UPLOAD",
    }
    verifications: ClassVar[Mapping[str, ObjectPath]] = {
        "json-items": f"{PACKAGE}.verifications:JSON_ITEMS",
        "json-compressed": f"{PACKAGE}.verifications:JSON_COMPRESSED",
        "json-tls": f"{PACKAGE}.verifications:JSON_TLS",
        "http2": f"{PACKAGE}.verifications:HTTP2",
        "http2-cleartext": f"{PACKAGE}.verifications:HTTP2_CLEARTEXT",
        "websocket": f"{PACKAGE}.verifications:WEBSOCKET",
        "static": f"{PACKAGE}.static_files",
        "upload": f"{PACKAGE}.upload",
    }
