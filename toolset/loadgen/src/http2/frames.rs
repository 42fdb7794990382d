//! HTTP/2 frames (RFC 9113 section 4), and the server's settings.

use serde_json::{Map, Value};

use crate::response::Violation;

/// Bytes that a client sends before the first frame.
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Length of a frame header, in bytes.
pub const HEAD_LENGTH: usize = 9;
/// Maximum payload length that this client accepts, in bytes. It is the protocol's default.
const MAX_PAYLOAD: usize = 16_384;
/// Maximum flow-control window, in bytes.
pub const MAX_WINDOW: i64 = (1 << 31) - 1;
/// Initial flow-control window, in bytes.
pub const DEFAULT_WINDOW: i64 = 65_535;

pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const RST_STREAM: u8 = 3;
pub const SETTINGS: u8 = 4;
pub const PUSH_PROMISE: u8 = 5;
pub const PING: u8 = 6;
pub const GOAWAY: u8 = 7;
pub const WINDOW_UPDATE: u8 = 8;
pub const CONTINUATION: u8 = 9;

pub const ACK: u8 = 0x1;
pub const END_STREAM: u8 = 0x1;
pub const END_HEADERS: u8 = 0x4;
pub const PADDED: u8 = 0x8;
pub const WITH_PRIORITY: u8 = 0x20;

/// A received frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    pub kind: u8,
    pub flags: u8,
    pub stream: u32,
    pub payload: &'a [u8],
}

impl<'a> Frame<'a> {
    /// Return the total length of the first frame in `bytes`, or `None` if the frame header is incomplete.
    pub fn length(bytes: &[u8]) -> Result<Option<usize>, Violation> {
        let Some(head) = bytes.first_chunk::<HEAD_LENGTH>() else { return Ok(None) };
        let payload = usize::from(head[0]) << 16 | usize::from(head[1]) << 8 | usize::from(head[2]);
        if payload > MAX_PAYLOAD {
            return Err(Violation("frame is longer than SETTINGS_MAX_FRAME_SIZE"));
        }
        Ok(Some(HEAD_LENGTH + payload))
    }

    /// Return the first frame in `bytes`, or `None` if it is incomplete.
    pub fn parse(bytes: &'a [u8]) -> Result<Option<Self>, Violation> {
        let Some(length) = Self::length(bytes)?.filter(|&length| length <= bytes.len()) else { return Ok(None) };
        let stream = number(&bytes[5..]) & 0x7fff_ffff;
        Ok(Some(Self { kind: bytes[3], flags: bytes[4], stream, payload: &bytes[HEAD_LENGTH..length] }))
    }

    /// Return whether `flag` is set.
    pub fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// Return the payload without padding and priority fields.
    pub fn content(&self) -> Result<&'a [u8], Violation> {
        let too_short = Violation("padding is longer than the frame");
        let mut content = self.payload;
        if self.has(PADDED) {
            let (&padding, rest) = content.split_first().ok_or(too_short)?;
            content = rest.len().checked_sub(padding.into()).map(|length| &rest[..length]).ok_or(too_short)?;
        }
        if self.kind == HEADERS && self.has(WITH_PRIORITY) {
            content = content.get(5..).ok_or(too_short)?;
        }
        Ok(content)
    }

    /// Return the payload as a number. Fail unless it has exactly four bytes.
    pub fn number(&self) -> Result<u32, Violation> {
        if self.payload.len() == 4 { Ok(number(self.payload)) } else { Err(Violation("frame has an invalid length")) }
    }
}

/// Return the first four bytes as a big-endian number, or 0 if there are fewer bytes.
pub fn number(bytes: &[u8]) -> u32 {
    bytes.first_chunk().map_or(0, |&bytes| u32::from_be_bytes(bytes))
}

/// Append a frame header for a payload of `length` bytes.
#[inline]
pub fn push_head(out: &mut Vec<u8>, length: usize, kind: u8, flags: u8, stream: u32) {
    let size = (length as u32).to_be_bytes();
    let id = stream.to_be_bytes();
    out.extend_from_slice(&[size[1], size[2], size[3], kind, flags, id[0], id[1], id[2], id[3]]);
}

/// Append a frame with a number as payload.
pub fn push_number(out: &mut Vec<u8>, kind: u8, stream: u32, value: u32) {
    push_head(out, 4, kind, 0, stream);
    out.extend_from_slice(&value.to_be_bytes());
}

/// Append a SETTINGS frame.
pub fn push_settings(out: &mut Vec<u8>, settings: &[(u16, u32)]) {
    push_head(out, settings.len() * 6, SETTINGS, 0, 0);
    for (id, value) in settings {
        out.extend_from_slice(&id.to_be_bytes());
        out.extend_from_slice(&value.to_be_bytes());
    }
}

pub const HEADER_TABLE_SIZE: u16 = 1;
pub const ENABLE_PUSH: u16 = 2;
pub const MAX_CONCURRENT_STREAMS: u16 = 3;
pub const INITIAL_WINDOW_SIZE: u16 = 4;
pub const MAX_FRAME_SIZE: u16 = 5;
const SETTING_NAMES: [&str; 6] = [
    "header_table_size",
    "enable_push",
    "max_concurrent_streams",
    "initial_window_size",
    "max_frame_size",
    "max_header_list_size",
];

/// The settings that the server sent; `None` for settings that it did not send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PeerSettings([Option<u32>; SETTING_NAMES.len()]);

impl PeerSettings {
    /// Return a setting, or its default.
    pub fn get(&self, id: u16, default: u32) -> u32 {
        self.0[usize::from(id) - 1].unwrap_or(default)
    }

    /// Apply the settings in a frame's payload.
    pub fn update(&mut self, payload: &[u8]) -> Result<(), Violation> {
        if payload.len() % 6 != 0 {
            return Err(Violation("SETTINGS has an invalid length"));
        }
        for setting in payload.chunks_exact(6) {
            let (id, value) = (u16::from_be_bytes([setting[0], setting[1]]), number(&setting[2..]));
            let valid = match id {
                INITIAL_WINDOW_SIZE => i64::from(value) <= MAX_WINDOW,
                MAX_FRAME_SIZE => (16_384..1 << 24).contains(&value),
                ENABLE_PUSH => value == 0, // a server must not enable it
                _ => true,
            };
            if !valid {
                return Err(Violation("SETTINGS has an invalid value"));
            }
            if let Some(place) = usize::from(id).checked_sub(1).and_then(|place| self.0.get_mut(place)) {
                *place = Some(value);
            }
        }
        Ok(())
    }

    /// For each setting, keep the lower of the two values.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine = mine.iter().copied().chain(theirs).min();
        }
    }

    /// Return the received settings as a JSON object, keyed by name.
    pub fn to_json(self) -> Value {
        let named = SETTING_NAMES.iter().zip(self.0).filter_map(|(name, value)| Some((name, value?)));
        named.map(|(name, value)| ((*name).to_owned(), value.into())).collect::<Map<_, _>>().into()
    }
}
