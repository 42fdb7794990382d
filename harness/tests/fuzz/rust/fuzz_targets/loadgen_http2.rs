//! An HTTP/2 connection yields the same events however the server's bytes are split, and its output stays bounded.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tfb_fuzz::http2::{EncodedRequest, Http2Session, Limits};
use tfb_fuzz::{pieces, split_input};

const LIMITS: Limits = Limits { depth: 4, window: 10_000, body: 1_000, shared_table: true };
const SETTINGS: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0]; // empty SETTINGS frame
const MAX_OUTPUT: usize = 17; // maximum reply bytes per byte from the server

/// Return the events as text, and the number of reply bytes.
fn read(pieces: &[&[u8]]) -> (Vec<String>, usize) {
    let request = EncodedRequest::new("GET / HTTP/1.1\r\nHost: a\r\n\r\n", b"", "http").unwrap();
    let (mut out, mut events) = (Vec::new(), Vec::new());
    let mut session = Http2Session::new(LIMITS, &mut out);
    session.advance(SETTINGS, &mut out).unwrap();
    for _ in 0..session.capacity() {
        session.send(&request, false, true, &mut out);
    }
    out.clear();
    for piece in pieces {
        let mut data = *piece;
        while !data.is_empty() {
            match session.advance(data, &mut out) {
                Ok((used, event)) => {
                    assert!(used > 0 && used <= data.len());
                    data = &data[used..];
                    events.extend(event.map(|event| format!("{event:?}")));
                }
                Err(violation) => {
                    events.push(format!("{violation:?}"));
                    return (events, out.len());
                }
            }
        }
    }
    (events, out.len())
}

fuzz_target!(|data: &[u8]| {
    let Some((max_length, seed, stream)) = split_input(data) else { return };
    let (events, output) = read(&[stream]);
    assert_eq!(events, read(&pieces(stream, max_length, seed)).0, "pieces of up to {max_length} bytes");
    assert!(output <= MAX_OUTPUT * (stream.len() + 1));
    assert!(events.iter().all(|event| event.len() < 1 << 20));
});
