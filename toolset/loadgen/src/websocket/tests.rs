use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use tungstenite::Message;

use super::messages::MAX_LENGTH;
use super::*;

type Serve = fn(&mut tungstenite::WebSocket<UnixStream>, Message);

/// Run a tungstenite server in a separate thread, which calls `serve` for each message. Send `count` messages, with at
/// most two in flight, close the connection, and return the events.
fn exchange(count: usize, serve: Serve) -> Vec<MessageEvent> {
    let (mut client, server) = UnixStream::pair().unwrap();
    let thread = std::thread::spawn(move || {
        let mut server = tungstenite::accept(server).unwrap();
        while let Ok(message) = server.read() {
            if message.is_text() || message.is_binary() {
                serve(&mut server, message);
            }
        }
    });
    let mut random = Random::new(7);
    let pool = MessagePool::new(&mut random);
    let (mut out, mut buffer, mut events) = (Vec::new(), [0; 700], Vec::new());
    let mut session = WebSocketSession::new("/ws?a", "Host: a\r\n", &mut random, &mut out);
    let (mut sent, mut outstanding) = (0, std::collections::VecDeque::new());
    loop {
        client.write_all(&std::mem::take(&mut out)).unwrap();
        let length = client.read(&mut buffer).unwrap();
        let mut at = 0;
        while at < length {
            let expected = outstanding.front().map(|&message| pool.get(message));
            let (used, event) = session.advance(&buffer[at..length], expected, &mut out).unwrap();
            at += used;
            events.extend(event);
            match event {
                Some(MessageEvent::Closed { .. }) => {
                    drop(client);
                    thread.join().unwrap();
                    return events;
                }
                Some(MessageEvent::Message { .. }) => drop(outstanding.pop_front()),
                Some(MessageEvent::Opened) | None => {}
            }
        }
        while !events.is_empty() && sent < count && outstanding.len() < 2 {
            let message = MessagePool::draw(&mut random);
            pool.push(message, &mut random, &mut out);
            outstanding.push_back(message);
            sent += 1;
        }
        if sent == count && outstanding.is_empty() && !session.closing {
            session.close(&mut out);
        }
    }
}

fn unequal(events: &[MessageEvent]) -> usize {
    events.iter().filter(|&&event| event == MessageEvent::Message { equal: false }).count()
}

#[test]
fn echoes_of_an_independent_server_are_equal() {
    let events = exchange(2000, |server, message| {
        server.write(Message::Ping("are you there".into())).unwrap();
        server.send(message).unwrap();
    });
    assert_eq!((events[0], events.len(), unequal(&events)), (MessageEvent::Opened, 2002, 0));
    assert_eq!(events[2001], MessageEvent::Closed { normal: true });
}

#[test]
fn wrong_echoes_are_detected() {
    let wrong: [Serve; 3] = [
        |server, message| {
            let mut bytes = message.into_data().to_vec();
            bytes.pop();
            server.send(Message::binary(bytes)).unwrap();
        },
        |server, _| server.send(Message::text("hello")).unwrap(),
        |server, message| {
            let other = if message.is_text() { Message::binary(message.into_data()) } else { Message::text("") };
            server.send(other).unwrap();
        },
    ];
    for serve in wrong {
        assert_eq!(unequal(&exchange(50, serve)), 50);
    }
}

/// Return a session after the upgrade.
fn opened() -> WebSocketSession {
    let mut out = Vec::new();
    let mut session = WebSocketSession::new("/", "", &mut Random::new(1), &mut out);
    let key = String::from_utf8(out).unwrap();
    let key = key.rsplit_once("Key: ").unwrap().1.trim().to_owned();
    let upgrade = format!("Upgrade: WebSocket\r\nSec-WebSocket-Accept: {}", derive_accept_key(key.as_bytes()));
    let head = format!("HTTP/1.1 101 Switching\r\nConnection: keep-alive, upgrade\r\n{upgrade}\r\n\r\n");
    for part in head.as_bytes().chunks(9) {
        session.advance(part, None, &mut Vec::new()).unwrap();
    }
    session
}

/// Pass `data` to a session that expects the text "hello".
fn events(session: &mut WebSocketSession, data: &[u8]) -> Result<Vec<MessageEvent>, Violation> {
    let expected = Some(MessageText { binary: false, bytes: b"hello" });
    let (mut at, mut events) = (0, Vec::new());
    while at < data.len() {
        let (used, event) = session.advance(&data[at..], expected, &mut Vec::new())?;
        at += used;
        events.extend(event);
    }
    Ok(events)
}

#[test]
fn fragments_form_a_message() {
    let data = b"\x01\x02he\x89\x02hi\x00\x00\x80\x03llo\x01\x05hello\x80\x01!";
    for size in [1, 3, data.len()] {
        let mut session = opened();
        let all: Vec<_> = data.chunks(size).flat_map(|part| events(&mut session, part).unwrap()).collect();
        assert_eq!(all, [MessageEvent::Message { equal: true }, MessageEvent::Message { equal: false }]);
        assert_eq!(session.replies, 1);
    }
}

#[test]
fn violations_are_detected() {
    for (data, message) in [
        (&b"\x80\x01a"[..], "out of order"),
        (b"\x01\x01a\x81\x01b", "out of order"),
        (b"\x81\x81abcde", "masked"),
        (b"\xc1\x01a", "extension"),
        (b"\x83\x01a", "opcode"),
        (b"\x89\x7e\x00\x7e", "control frame"),
        (b"\x09\x00", "control frame"),
    ] {
        let violation = events(&mut opened(), data).unwrap_err().0;
        assert!(violation.contains(message), "{message}: {violation}");
    }
}

#[test]
fn upgrades_are_checked() {
    for (head, message) in [
        ("HTTP/1.1 200 OK\r\n\r\n", "refused"),
        ("HTTP/1.1 101 a\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n", "another protocol"),
        ("HTTP/1.1 101 a\r\nConnection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: a\r\n\r\n", "Accept"),
        ("HTTP/2 101", "not valid"),
        (&"a".repeat(20_000), "not valid"),
    ] {
        let mut session = WebSocketSession::new("/", "", &mut Random::new(1), &mut Vec::new());
        let violation = session.advance(head.as_bytes(), None, &mut Vec::new()).unwrap_err().0;
        assert!(violation.contains(message), "{message}: {violation}");
    }
}

#[test]
fn messages_have_the_documented_lengths() {
    let mut random = Random::new(3);
    let pool = MessagePool::new(&mut random);
    let drawn: Vec<_> = (0..50_000).map(|_| MessagePool::draw(&mut random)).collect();
    let lengths: Vec<_> = drawn.iter().map(|&message| pool.get(message).bytes.len()).collect();
    assert_eq!((lengths.iter().min(), lengths.iter().max()), (Some(&5), Some(&MAX_LENGTH)));
    let binary = drawn.iter().filter(|&&message| pool.get(message).binary).count();
    assert!((24_000..26_000).contains(&binary), "{binary}");
    assert!(drawn.iter().all(|&message| pool.get(message).binary || pool.get(message).bytes.is_ascii()));
}
