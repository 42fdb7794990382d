use bytes::Bytes;
use h2::server::Builder;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

use super::frames::{
    CONTINUATION, DATA, GOAWAY, HEADERS, PADDED, PING, PUSH_PROMISE, RST_STREAM, SETTINGS, WINDOW_UPDATE, push_head,
    push_number, push_settings,
};
use super::*;

const LIMITS: Limits = Limits { depth: 8, window: 65_535, body: 0, shared_table: true };

fn request(number: usize, body: &str) -> EncodedRequest {
    let head = format!("GET /{number} HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n", body.len());
    EncodedRequest::new(&head, body.as_bytes(), "http").unwrap()
}

// ---- an independent server: the crate h2 -----------------------------------------------------------------------------

/// Respond to each request with the path, repeated `size` times, and with the length of the request body as a header.
/// Wait until `group` requests are open, and then respond to the latest first, so that streams end out of order.
async fn serve(io: DuplexStream, builder: Builder, group: usize, size: usize) {
    let mut connection = builder.handshake::<_, Bytes>(io).await.unwrap();
    let mut waiting = Vec::new();
    while let Some(Ok((request, respond))) = connection.accept().await {
        waiting.push((request, respond));
        if waiting.len() < group {
            continue;
        }
        for (request, mut respond) in waiting.drain(..).rev() {
            tokio::spawn(async move {
                let text = request.uri().path().repeat(size);
                let mut body = request.into_body();
                let mut received = 0;
                while let Some(Ok(part)) = body.data().await {
                    received += part.len();
                    body.flow_control().release_capacity(part.len()).unwrap();
                }
                let head =
                    http::Response::builder().header("x-received", received).header("content-length", text.len());
                let mut stream = respond.send_response(head.body(()).unwrap(), text.is_empty()).unwrap();
                if !text.is_empty() {
                    stream.send_data(text.into(), true).unwrap();
                }
            });
        }
    }
}

/// Send requests to a server built on the h2 crate. Return the request number, head and body of each response, in
/// order of arrival.
fn exchange(
    builder: Builder,
    limits: Limits,
    bodies: &[&str],
    group: usize,
    size: usize,
) -> Vec<(usize, String, String)> {
    let requests: Vec<_> = bodies.iter().enumerate().map(|(number, body)| request(number, body)).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let (mut client, server) = tokio::io::duplex(1 << 20);
        tokio::spawn(serve(server, builder, group, size));
        let mut out = Vec::new();
        let mut session = Http2Session::new(limits, &mut out);
        let (mut opened, mut next, mut outstanding) = (false, 0, Vec::new());
        let (mut responses, mut buffer) = (Vec::new(), vec![0; 3000]);
        while responses.len() < requests.len() {
            while opened && next < requests.len() && outstanding.len() < session.capacity() {
                session.send(&requests[next], false, true, &mut out);
                outstanding.push(next);
                next += 1;
            }
            client.write_all(&std::mem::take(&mut out)).await.unwrap();
            let count = client.read(&mut buffer).await.unwrap();
            assert!(count > 0, "server closed the connection after {} responses", responses.len());
            let mut at = 0;
            while at < count {
                let (used, event) = session.advance(&buffer[at..count], &mut out).unwrap();
                at += used;
                match event {
                    Some(StreamEvent::Opened) => opened = true,
                    Some(StreamEvent::Response { index, status: 200, malformed: false, capture, .. }) => {
                        let CapturedResponse { head, body, .. } = *capture.unwrap();
                        let text = |bytes| String::from_utf8(bytes).unwrap();
                        responses.push((outstanding.remove(index), text(head), text(body)));
                    }
                    None => {}
                    Some(other) => panic!("{other:?}"),
                }
            }
        }
        responses
    })
}

#[test]
fn interleaved_responses_belong_to_their_requests() {
    let responses = exchange(Builder::new(), LIMITS, &[""; 64], 8, 100);
    let order: Vec<usize> = responses.iter().map(|(number, ..)| *number).collect();
    assert_ne!(order, (0..64).collect::<Vec<_>>());
    for (number, head, body) in responses {
        assert_eq!(body, format!("/{number}").repeat(100));
        assert!(head.starts_with("HTTP/2 200\r\nx-received: 0\r\n"), "{head}");
    }
}

#[test]
fn small_windows_of_the_client_are_extended() {
    let limits = Limits { window: 100, ..LIMITS };
    for (number, _, body) in exchange(Builder::new(), limits, &[""; 8], 1, 5000) {
        assert_eq!(body, format!("/{number}").repeat(5000));
    }
}

#[test]
fn small_windows_of_the_server_are_respected() {
    let body = "b".repeat(300_000);
    let mut builder = Builder::new();
    builder.initial_window_size(1000).initial_connection_window_size(70_000);
    for (_, head, _) in exchange(builder, LIMITS, &[&body, "", &body, "c"], 1, 1) {
        assert!(
            ["x-received: 300000", "x-received: 0", "x-received: 1\r"].iter().any(|text| head.contains(text)),
            "{head}"
        );
    }
}

#[test]
fn limits_of_the_server_are_respected() {
    let mut builder = Builder::new();
    builder.max_concurrent_streams(3).header_table_size(0).max_frame_size(20_000);
    assert_eq!(exchange(builder, LIMITS, &[""; 30], 3, 1).len(), 30);
}

// ---- hand-made frames ------------------------------------------------------------------------------------------------

/// Return a session that has received the server's settings and has open streams 1, 3, 5, ...
fn session(settings: &[(u16, u32)], streams: usize) -> Http2Session {
    let mut out = Vec::new();
    let mut session = Http2Session::new(Limits { window: 10_000, ..LIMITS }, &mut out);
    assert!(out.starts_with(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"));
    let mut frames = Vec::new();
    push_settings(&mut frames, settings);
    assert!(matches!(events(&mut session, &frames).unwrap()[..], [StreamEvent::Opened]));
    for number in 0..streams {
        session.send(&request(number, ""), false, true, &mut out);
    }
    session
}

fn events(session: &mut Http2Session, data: &[u8]) -> Result<Vec<StreamEvent>, Violation> {
    let (mut at, mut events, mut out) = (0, Vec::new(), Vec::new());
    while at < data.len() {
        let (used, event) = session.advance(&data[at..], &mut out)?;
        at += used;
        events.extend(event);
    }
    Ok(events)
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    push_head(&mut bytes, payload.len(), kind, flags, stream);
    bytes.extend_from_slice(payload);
    bytes
}

const OK: &[u8] = &[0x88]; // :status 200

#[test]
fn split_and_padded_frames_are_understood() {
    let mut length = OK.to_vec();
    hpack::push_literal(&mut length, "content-length", "3", false);
    let data = [
        frame(HEADERS, END_HEADERS, 1, &[0x08, 3, b'1', b'0', b'3']), // interim response
        frame(0xfa, 0, 1, b"extension"),
        frame(HEADERS, PADDED, 1, &[&[2][..], &length[..2], &[0, 0]].concat()),
        frame(CONTINUATION, END_HEADERS, 1, &length[2..]),
        frame(DATA, PADDED, 1, &[1, b'a', 0]),
        frame(PING, 0, 0, b"12345678"),
        frame(DATA, 0, 1, b"bc"),
        frame(HEADERS, END_HEADERS | END_STREAM, 1, &[0x00, 1, b't', 1, b'v']), // trailers
    ]
    .concat();
    for size in [1, 7, data.len()] {
        let mut session = session(&[], 1);
        let all: Vec<_> = data.chunks(size).flat_map(|part| events(&mut session, part).unwrap()).collect();
        let [StreamEvent::Response { index: 0, status: 200, malformed: false, capture: Some(capture), .. }] = &all[..]
        else {
            panic!("{all:?}")
        };
        assert_eq!(
            (&capture.body[..], &capture.head[..]),
            (&b"abc"[..], &b"HTTP/2 200\r\ncontent-length: 3\r\n\r\n"[..])
        );
        assert_eq!(session.replies, 2); // SETTINGS and PING
    }
}

#[test]
fn wrong_lengths_are_malformed() {
    let mut head = OK.to_vec();
    hpack::push_literal(&mut head, "content-length", "3", false);
    let head = frame(HEADERS, END_HEADERS, 1, &head);
    for (body, expected) in [("ab", true), ("abc", false), ("abcd", true)] {
        let data = [head.clone(), frame(DATA, END_STREAM, 1, body.as_bytes())].concat();
        let all = events(&mut session(&[], 1), &data).unwrap();
        assert!(matches!(all[..], [StreamEvent::Response { malformed, .. }] if malformed == expected), "{all:?}");
    }
}

#[test]
fn short_blocks_cannot_become_long_heads() {
    let mut block = OK.to_vec();
    hpack::push_literal(&mut block, "x", &"a".repeat(3_900), true);
    block.resize(block.len() + 1_000, 0xbe); // each byte repeats the field
    let data = frame(HEADERS, END_HEADERS, 1, &block);
    assert!(events(&mut session(&[], 1), &data).is_err());
}

#[test]
fn goaway_names_the_unprocessed_requests() {
    let mut session = session(&[], 4);
    let last = [5u32.to_be_bytes(), 0u32.to_be_bytes()].concat();
    let data = [frame(RST_STREAM, 0, 3, &[0; 4]), frame(GOAWAY, 0, 0, &last)].concat();
    let all = events(&mut session, &data).unwrap();
    assert!(matches!(all[..], [StreamEvent::Reset { index: 1 }, StreamEvent::GoAway { unprocessed: 1 }]), "{all:?}");
    assert_eq!((session.capacity(), session.finished()), (0, false));
    let rest = [1, 5].map(|id| frame(HEADERS, END_HEADERS | END_STREAM, id, OK)).concat();
    assert_eq!(events(&mut session, &rest).unwrap().len(), 2);
    assert!(session.finished());
}

#[test]
fn settings_limit_streams_and_are_reported() {
    let settings = [(frames::MAX_CONCURRENT_STREAMS, 2), (frames::HEADER_TABLE_SIZE, 0)];
    let mut session = session(&settings, 0);
    assert_eq!(session.capacity(), 2);
    let (mut first, mut second) = (Vec::new(), Vec::new());
    session.send(&request(1, ""), false, false, &mut first);
    session.send(&request(1, ""), false, false, &mut second);
    assert_eq!((first[HEAD_LENGTH], first[HEAD_LENGTH + 1..].len()), (hpack::CLEAR_TABLE, second.len() - HEAD_LENGTH));
    let mut merged = session.settings;
    let mut other = PeerSettings::default();
    other.update(&[0, 3, 0, 0, 0, 9, 0, 5, 0, 0, 0x40, 0]).unwrap();
    merged.merge(&other);
    let expected = serde_json::json!({"header_table_size": 0, "max_concurrent_streams": 2, "max_frame_size": 16384});
    assert_eq!(merged.to_json(), expected);
}

#[test]
fn violations_are_detected() {
    let headers = frame(HEADERS, END_HEADERS, 1, OK);
    let with = |next: Vec<u8>| [headers.clone(), next].concat();
    for (data, message) in [
        (with(frame(DATA, 0, 1, &[0; 10_001])), "flow control"),
        (frame(DATA, 0, 1, b"a"), "DATA before a head"),
        (frame(HEADERS, END_HEADERS, 2, OK), "never opened"),
        (frame(HEADERS, END_HEADERS, 3, OK), "never opened"),
        (with([frame(DATA, END_STREAM, 1, b""), frame(DATA, 0, 1, b"")].concat()), "closed stream"),
        (with(headers.clone()), "trailers"),
        (frame(HEADERS, END_HEADERS, 1, &[]), "without a valid status"),
        (frame(HEADERS, END_HEADERS | END_STREAM, 1, &[0x08, 3, b'1', b'0', b'3']), "interim"),
        (frame(HEADERS, END_HEADERS, 1, &[0xff]), "too long"),
        ([frame(HEADERS, 0, 1, OK), frame(PING, 0, 0, &[0; 8])].concat(), "interrupted"),
        (frame(CONTINUATION, END_HEADERS, 1, OK), "CONTINUATION without HEADERS"),
        (frame(PUSH_PROMISE, 0, 1, &[0; 5]), "push"),
        (frame(SETTINGS, 0, 0, &[0, 4, 0xff, 0, 0, 0]), "invalid value"),
        (frame(SETTINGS, 0, 0, &[0, 5, 0, 0, 0, 1]), "invalid value"),
        (frame(SETTINGS, 0, 0, &[0]), "invalid length"),
        (frame(WINDOW_UPDATE, 0, 0, &[0; 4]), "invalid value"),
        (frame(RST_STREAM, 0, 1, &[0; 3]), "invalid length"),
        (frame(PING, 0, 0, &[0; 7]), "PING"),
        (frame(DATA, PADDED, 1, &[3, 0]), "padding"),
        (vec![0, 0x40, 1, 0, 0, 0, 0, 0, 1], "longer than SETTINGS_MAX_FRAME_SIZE"),
    ] {
        let violation = events(&mut session(&[], 1), &data).unwrap_err().0;
        assert!(violation.contains(message), "{message}: {violation}");
    }
    let mut out = Vec::new();
    let violation = events(&mut Http2Session::new(LIMITS, &mut out), b"HTTP/1.1 400 Bad Request\r\n\r\n");
    assert!(violation.is_err());
    push_number(&mut out, WINDOW_UPDATE, 0, 1);
    assert_eq!(
        events(&mut Http2Session::new(LIMITS, &mut Vec::new()), &out[out.len() - 13..]).unwrap_err().0,
        "first frame is not SETTINGS"
    );
}
