//! The client side of a WebSocket connection (RFC 6455), as a state machine without I/O.

mod messages;

use std::io::Cursor;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use tungstenite::handshake::derive_accept_key;
use tungstenite::protocol::frame::FrameHeader;
use tungstenite::protocol::frame::coding::{Control, Data, OpCode};

pub use self::messages::{MessagePool, MessageText};
use crate::random::Random;
use crate::response::{Violation, ended_by_crlf};

/// Maximum length of a response to the upgrade request, in bytes.
const HEAD_LIMIT: usize = 16 * 1024;
/// Maximum length of a control frame's payload, in bytes.
const CONTROL_LIMIT: u64 = 125;
/// Maximum length of a frame header, in bytes.
const FRAME_HEAD_LIMIT: usize = 14;
/// Status code of a normal closure.
const NORMAL: [u8; 2] = 1000u16.to_be_bytes();

/// An event for the worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageEvent {
    /// The server accepted the upgrade, so messages may be sent.
    Opened,
    /// A complete message, and whether it equals the expected message.
    Message { equal: bool },
    /// The server sent a close frame. `normal` is true if the status code is 1000.
    Closed { normal: bool },
}

/// The part of the stream to which the next byte belongs.
#[derive(Clone, Copy, Debug)]
enum State {
    Upgrade,
    FrameHead,
    Data { left: u64, last: bool },
    Control { kind: Control, left: u64 },
}

/// State of a WebSocket connection.
#[derive(Debug)]
pub struct WebSocketSession {
    pub replies: u32,  // replies to control frames since the worker last reset this count
    pub closing: bool, // whether the client has sent a close frame
    accept: String,
    state: State,
    carry: Vec<u8>,          // incomplete header, or payload of a control frame
    message: Option<OpCode>, // opcode of an incomplete message
    received: usize,         // bytes of the message so far
    equal: bool,             // whether the message has matched the expected message so far
}

impl WebSocketSession {
    /// Create the state of a new connection, and append the upgrade request to `out`. `lines` are header lines.
    pub fn new(target: &str, lines: &str, random: &mut Random, out: &mut Vec<u8>) -> Self {
        let key = STANDARD.encode([random.bits().to_ne_bytes(), random.bits().to_ne_bytes()].concat());
        let upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13";
        let request = format!("GET {target} HTTP/1.1\r\n{lines}{upgrade}\r\nSec-WebSocket-Key: {key}\r\n\r\n");
        out.extend_from_slice(request.as_bytes());
        Self {
            replies: 0,
            closing: false,
            accept: derive_accept_key(key.as_bytes()),
            state: State::Upgrade,
            carry: Vec::new(),
            message: None,
            received: 0,
            equal: true,
        }
    }

    /// Read the next part of `data`. `expected` is the oldest message without an echo. Return the number of bytes
    /// consumed, and the event that they complete, if any.
    #[inline]
    pub fn advance(
        &mut self,
        data: &[u8],
        expected: Option<MessageText>,
        out: &mut Vec<u8>,
    ) -> Result<(usize, Option<MessageEvent>), Violation> {
        match self.state {
            State::Upgrade => self.upgrade(data),
            State::FrameHead => self.frame_head(data, expected, out),
            State::Data { left, last } => {
                let take = data.len().min(usize::try_from(left).unwrap_or(usize::MAX));
                let end = self.received + take;
                self.equal &= expected.and_then(|text| text.bytes.get(self.received..end)) == Some(&data[..take]);
                self.received = end;
                let left = left - take as u64;
                self.state = State::Data { left, last };
                Ok((take, if left == 0 { self.end_frame(last, expected) } else { None }))
            }
            State::Control { kind, left } => {
                let take = data.len().min(left as usize);
                self.carry.extend_from_slice(&data[..take]);
                let left = left - take as u64;
                self.state = State::Control { kind, left };
                Ok((take, if left == 0 { self.control(kind, out) } else { None }))
            }
        }
    }

    /// Append a close frame with status code 1000.
    pub fn close(&mut self, out: &mut Vec<u8>) {
        self.closing = true;
        push_frame(out, OpCode::Control(Control::Close), &NORMAL, [0; 4]);
    }

    fn upgrade(&mut self, data: &[u8]) -> Result<(usize, Option<MessageEvent>), Violation> {
        let before = self.carry.len();
        self.carry.extend_from_slice(data);
        let mut fields = [httparse::EMPTY_HEADER; 64];
        let mut head = httparse::Response::new(&mut fields);
        let parsed = head.parse(&self.carry).map_err(|_| Violation("response to the upgrade is not valid"))?;
        let httparse::Status::Complete(length) = parsed else {
            let too_long = self.carry.len() > HEAD_LIMIT;
            return if too_long {
                Err(Violation("response to the upgrade is too long"))
            } else {
                Ok((data.len(), None))
            };
        };
        let values = |name: &str| {
            let all = head.headers.iter().filter(move |field| field.name.eq_ignore_ascii_case(name));
            all.map(|field| String::from_utf8_lossy(field.value)).collect::<Vec<_>>().join(",")
        };
        let contains =
            |name: &str, token: &str| values(name).split(',').any(|part| part.trim().eq_ignore_ascii_case(token));
        if head.code != Some(101) || !ended_by_crlf(&self.carry[..length]) {
            return Err(Violation("server refused the upgrade"));
        }
        if !contains("upgrade", "websocket") || !contains("connection", "upgrade") {
            return Err(Violation("server switched to another protocol"));
        }
        if values("sec-websocket-accept") != self.accept {
            return Err(Violation("Sec-WebSocket-Accept is wrong"));
        }
        if !values("sec-websocket-extensions").is_empty() || !values("sec-websocket-protocol").is_empty() {
            return Err(Violation("server selected an extension or a protocol that was not offered"));
        }
        self.carry.clear();
        self.state = State::FrameHead;
        Ok((length - before, Some(MessageEvent::Opened)))
    }

    #[inline]
    fn frame_head(
        &mut self,
        data: &[u8],
        expected: Option<MessageText>,
        out: &mut Vec<u8>,
    ) -> Result<(usize, Option<MessageEvent>), Violation> {
        let before = self.carry.len();
        let parsed = if before == 0 {
            parse_head(data)?
        } else {
            let take = data.len().min(FRAME_HEAD_LIMIT - before);
            self.carry.extend_from_slice(&data[..take]);
            parse_head(&self.carry)?
        };
        let Some((head, length, size)) = parsed else {
            if before == 0 {
                self.carry.extend_from_slice(data);
            }
            return Ok((data.len(), None));
        };
        self.carry.clear();
        if head.mask.is_some() || head.rsv1 || head.rsv2 || head.rsv3 {
            return Err(Violation("frame is masked or uses an extension"));
        }
        let used = size - before;
        match head.opcode {
            OpCode::Control(kind) => {
                if length > CONTROL_LIMIT || !head.is_final {
                    return Err(Violation("control frame is too long or fragmented"));
                }
                self.state = State::Control { kind, left: length };
                return Ok((used, if length == 0 { self.control(kind, out) } else { None }));
            }
            OpCode::Data(kind) => {
                if (kind == Data::Continue) != self.message.is_some() {
                    return Err(Violation("fragments of a message are out of order"));
                }
                if self.message.is_none() {
                    self.message = Some(head.opcode);
                    self.received = 0;
                    self.equal = true;
                }
            }
        }
        self.state = State::Data { left: length, last: head.is_final };
        Ok((used, if length == 0 { self.end_frame(head.is_final, expected) } else { None }))
    }

    /// Handle the end of a data frame. Return the message that it completes, if any.
    #[inline]
    fn end_frame(&mut self, last: bool, expected: Option<MessageText>) -> Option<MessageEvent> {
        self.state = State::FrameHead;
        if !last {
            return None;
        }
        let opcode = self.message.take();
        let complete = expected.is_some_and(|text| {
            let kind = if text.binary { Data::Binary } else { Data::Text };
            opcode == Some(OpCode::Data(kind)) && self.received == text.bytes.len()
        });
        Some(MessageEvent::Message { equal: self.equal && complete })
    }

    /// Handle a complete control frame.
    fn control(&mut self, kind: Control, out: &mut Vec<u8>) -> Option<MessageEvent> {
        self.state = State::FrameHead;
        let payload = std::mem::take(&mut self.carry);
        match kind {
            Control::Ping => {
                self.replies += 1;
                push_frame(out, OpCode::Control(Control::Pong), &payload, [0; 4]);
                None
            }
            Control::Close => {
                if !self.closing {
                    self.close(out);
                }
                Some(MessageEvent::Closed { normal: payload.starts_with(&NORMAL) })
            }
            Control::Pong | Control::Reserved(_) => None,
        }
    }
}

/// Parse a frame header. Return the header, the payload length and the header length, or `None` if it is incomplete.
#[inline]
fn parse_head(bytes: &[u8]) -> Result<Option<(FrameHeader, u64, usize)>, Violation> {
    let mut cursor = Cursor::new(bytes);
    let parsed = FrameHeader::parse(&mut cursor).map_err(|_| Violation("frame has an unknown opcode"))?;
    Ok(parsed.map(|(head, length)| (head, length, cursor.position() as usize)))
}

/// Append a masked, unfragmented frame.
#[inline]
pub fn push_frame(out: &mut Vec<u8>, opcode: OpCode, payload: &[u8], mask: [u8; 4]) {
    let head = FrameHeader { opcode, mask: Some(mask), ..FrameHeader::default() };
    let written = head.format(payload.len() as u64, out);
    debug_assert!(written.is_ok(), "writing to memory cannot fail");
    let start = out.len();
    out.extend_from_slice(payload);
    let [first, second, third, fourth] = mask;
    let wide = [first, second, third, fourth, first, second, third, fourth];
    let mut words = out[start..].chunks_exact_mut(8);
    for word in &mut words {
        word.iter_mut().zip(wide).for_each(|(byte, mask)| *byte ^= mask);
    }
    words.into_remainder().iter_mut().zip(wide).for_each(|(byte, mask)| *byte ^= mask);
}

#[cfg(test)]
mod tests;
