//! A WebSocket connection yields the same events however the server's bytes are split.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use tfb_fuzz::random::Random;
use tfb_fuzz::websocket::{MessagePool, WebSocketSession};
use tfb_fuzz::{pieces, split_input};
use tungstenite::handshake::derive_accept_key;

static POOL: LazyLock<MessagePool> = LazyLock::new(|| MessagePool::new(&mut Random::new(2)));

/// Return the events as text. If `upgraded` is set, a valid upgrade response precedes the bytes.
fn read(pieces: &[&[u8]], upgraded: bool) -> Vec<String> {
    let (mut random, mut out, mut events) = (Random::new(1), Vec::new(), Vec::new());
    let mut session = WebSocketSession::new("/ws", "Host: a\r\n", &mut random, &mut out);
    let message = MessagePool::draw(&mut random);
    if upgraded {
        let request = String::from_utf8(out.clone()).unwrap();
        let key = request.split("Sec-WebSocket-Key: ").nth(1).unwrap().trim();
        let accept = derive_accept_key(key.as_bytes());
        let head = format!(
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Accept: {accept}\r\n\r\n"
        );
        let (used, event) = session.advance(head.as_bytes(), None, &mut out).unwrap();
        assert!(used == head.len() && event.is_some());
    }
    for piece in pieces {
        let mut data = *piece;
        while !data.is_empty() {
            match session.advance(data, Some(POOL.get(message)), &mut out) {
                Ok((used, event)) => {
                    assert!(used <= data.len() && (used > 0 || event.is_some()));
                    data = &data[used..];
                    events.extend(event.map(|event| format!("{event:?}")));
                }
                Err(violation) => {
                    events.push(format!("{violation:?}"));
                    return events;
                }
            }
        }
    }
    events
}

fuzz_target!(|data: &[u8]| {
    let Some((max_length, seed, stream)) = split_input(data) else { return };
    let upgraded = seed & 1 == 0;
    assert_eq!(read(&[stream], upgraded), read(&pieces(stream, max_length, seed), upgraded), "{max_length}");
});
