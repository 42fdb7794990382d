"""The test types of the group ``protocols``. TechEmpower's score does not include them."""

from dataclasses import replace

from harness.extras.protocols.certificates import write_certificate
from harness.extras.protocols.data_set import write_data_set
from harness.extras.protocols.static_folder import write_static_folder
from harness.plan.testtypes import RequestBatch, TestType
from harness.records.loads import ClosedLoop

GROUP = "protocols"
EXAMPLE = "20?m=7"  # the first 20 items, with totals multiplied by 7
RESPONSES_PER_CONNECTION = 10  # number of responses after which the client closes a short-lived connection
STREAM_LOADS = (ClosedLoop(connections=16, depth=16), ClosedLoop(connections=64, depth=32))

JSON_ITEMS = TestType(
    name="json-items",
    title="JSON items",
    group=GROUP,
    techempower=False,
    response_shape="items",
    draws_requests=True,
    example=EXAMPLE,
    inputs=(write_data_set,),
    fixed_loads=(ClosedLoop(connections=64), ClosedLoop(connections=256)),
    footnote="each request asks for 1 to 50 items (about 0.2 to 9 kB), drawn at random",
)

JSON_COMPRESSED = replace(
    JSON_ITEMS,
    name="json-compressed",
    title="Compressed JSON",
    fixed_loads=(ClosedLoop(connections=64),),
    footnote="consider CPU time together with response size, because stronger compression costs more CPU time",
)

JSON_TLS = replace(
    JSON_ITEMS,
    name="json-tls",
    title="JSON over TLS",
    inputs=(write_data_set, write_certificate),
    port_variable="HTTPS_PORT",
    tls=True,
    fixed_loads=(
        ClosedLoop(connections=64),
        ClosedLoop(connections=64, close_after=RESPONSES_PER_CONNECTION),
    ),
    footnote="TLS 1.3; loads with r10 open a new connection, with a full handshake, after 10 responses; "
    "response times exclude connection setup",
)

HTTP2 = replace(
    JSON_ITEMS,
    name="http2",
    title="HTTP/2",
    inputs=(write_data_set, write_certificate),
    port_variable="HTTPS_PORT",
    tls=True,
    protocol="http2",
    fixed_loads=STREAM_LOADS,
    footnote="TLS 1.3 and ALPN h2; p is the number of concurrent streams per connection",
)

HTTP2_CLEARTEXT = replace(
    JSON_ITEMS,
    name="http2-cleartext",
    title="HTTP/2 in cleartext",
    port_variable="H2C_PORT",
    protocol="http2",
    fixed_loads=STREAM_LOADS,
    footnote="HTTP/2 with prior knowledge; p is the number of concurrent streams per connection",
)

WEBSOCKET = TestType(
    name="websocket",
    title="WebSocket echo",
    group=GROUP,
    techempower=False,
    response_shape="echo",
    protocol="websocket",
    fixed_loads=(ClosedLoop(connections=64), ClosedLoop(connections=64, depth=16)),
    footnote="text and binary messages of 5 to 1,024 bytes; p is the number of messages in flight per connection",
)

SHORT_LIVED = TestType(
    name="short-lived",
    title="Short-lived connections",
    group=GROUP,
    techempower=False,
    response_shape="greeting",
    fixed_loads=(ClosedLoop(connections=64, close_after=RESPONSES_PER_CONNECTION),),
    brief=(RequestBatch(times=40),),
    thorough=(RequestBatch(times=400),),
    footnote="the client closes each connection after 10 responses; response times exclude connection setup",
)

STATIC = TestType(
    name="static",
    title="Static files",
    group=GROUP,
    techempower=False,
    response_shape="file",
    draws_requests=True,
    example="shop.html",
    inputs=(write_static_folder,),
    fixed_loads=(ClosedLoop(connections=64),),
    footnote="20 files of 3 to 300 kB; a tenth of the responses are 304; servers may compress",
)

UPLOAD = TestType(
    name="upload",
    title="Upload",
    group=GROUP,
    techempower=False,
    response_shape="number",
    draws_requests=True,
    fixed_loads=(ClosedLoop(connections=32),),
    footnote="bodies of 1 kB to 1 MB, half of them chunked",
)
