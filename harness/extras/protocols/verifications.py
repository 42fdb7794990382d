"""Verifications of the test types whose responses contain items, and of the WebSocket echo."""

from harness.extras.protocols import compression, encryption, items, messages, streams
from harness.extras.protocols.items import ItemsVerification

JSON_ITEMS = ItemsVerification(check_modules=(items,))
JSON_COMPRESSED = ItemsVerification(
    check_modules=(compression,), headers=compression.HEADERS, observer=compression.observe_compression
)
JSON_TLS = ItemsVerification(check_modules=(encryption,), observer=encryption.observe_encryption)
HTTP2 = ItemsVerification(
    check_modules=(streams,), observer=streams.observe_encrypted_streams, client=streams.http2_client
)
HTTP2_CLEARTEXT = ItemsVerification(check_modules=(), observer=streams.observe_streams, client=streams.http2_client)


class EchoVerification:
    """Verification of WebSocket servers that echo each message."""

    check_modules = (messages,)
    load = None  # no verification of loads, because the load generator itself compares every echo
    drawing = None
    gather = staticmethod(messages.gather)


WEBSOCKET = EchoVerification()
