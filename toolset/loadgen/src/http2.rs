//! The client side of an HTTP/2 connection (RFC 9113), as a state machine without I/O.

mod encoded;
mod frames;
mod hpack;
mod stream;

use std::collections::VecDeque;

pub use self::encoded::EncodedRequest;
use self::encoded::TableState;
pub use self::frames::PeerSettings;
use self::frames::{ACK, DEFAULT_WINDOW, END_HEADERS, END_STREAM, Frame, HEAD_LENGTH, MAX_WINDOW};
use self::hpack::Decoder;
use self::stream::Stream;
pub use self::stream::{Limits, StreamEvent};
use crate::response::{CapturedResponse, Violation};

/// Highest stream identifier. A connection that has used it cannot send further requests.
const MAX_STREAM: u32 = (1 << 31) - 1;
/// Error code for a stream that the client no longer needs.
const CANCEL: u32 = 8;
/// Maximum length of a header block, in bytes.
const BLOCK_LIMIT: usize = 64 * 1024;

/// State of an HTTP/2 connection.
#[derive(Debug)]
pub struct Http2Session {
    pub settings: PeerSettings,
    pub replies: u32, // replies to control frames since the worker last reset this count
    limits: Limits,
    opened: bool,   // whether the server's first settings have arrived
    draining: bool, // whether the server accepts no further requests
    next_id: u32,
    streams: VecDeque<Stream>, // oldest first
    table: TableState,
    decoder: Decoder,
    carry: Vec<u8>,                      // start of an incomplete frame
    block: Option<(u32, bool, Vec<u8>)>, // incomplete header block: stream, END_STREAM flag, bytes
    window: i64,                         // bytes that the server may still send on the connection
    send_window: i64,
}

impl Http2Session {
    /// Create the state of a new connection, and append the client's first frames to `out`.
    pub fn new(limits: Limits, out: &mut Vec<u8>) -> Self {
        let connection_window = limits.connection_window();
        out.extend_from_slice(frames::PREFACE);
        let own = [(frames::ENABLE_PUSH, 0), (frames::INITIAL_WINDOW_SIZE, limits.window)];
        frames::push_settings(out, &own);
        let increase = connection_window - DEFAULT_WINDOW;
        if increase > 0 {
            frames::push_number(out, frames::WINDOW_UPDATE, 0, increase as u32);
        }
        Self {
            settings: PeerSettings::default(),
            replies: 0,
            limits,
            opened: false,
            draining: false,
            next_id: 1,
            streams: VecDeque::with_capacity(limits.depth.min(1024)),
            table: if limits.shared_table { TableState::Empty } else { TableState::Abandoned },
            decoder: Decoder::default(),
            carry: Vec::new(),
            block: None,
            window: connection_window,
            send_window: DEFAULT_WINDOW,
        }
    }

    /// Return the number of streams that may be open at the same time.
    #[inline]
    pub fn capacity(&self) -> usize {
        if self.draining || self.next_id > MAX_STREAM {
            return 0;
        }
        self.limits.depth.min(self.settings.get(frames::MAX_CONCURRENT_STREAMS, u32::MAX) as usize)
    }

    /// Return whether the connection must be replaced: it can send no further request, and no response is outstanding.
    pub fn finished(&self) -> bool {
        (self.draining || self.next_id > MAX_STREAM) && self.streams.is_empty()
    }

    /// Open a stream for a request, and append the frames to `out`. The caller must check `capacity` first.
    #[inline]
    pub fn send(&mut self, request: &EncodedRequest, bodiless: bool, captured: bool, out: &mut Vec<u8>) {
        let start = out.len();
        let has_body = !request.body.is_empty();
        let flags = END_HEADERS | if has_body { 0 } else { END_STREAM };
        frames::push_head(out, 0, frames::HEADERS, flags, self.next_id);
        self.table = request.push_block(out, self.table);
        let length = ((out.len() - start - HEAD_LENGTH) as u32).to_be_bytes();
        out[start..start + 3].copy_from_slice(&length[1..]);
        self.streams.push_back(Stream {
            id: self.next_id,
            bodiless,
            window: self.limits.window.into(),
            send_window: self.settings.get(frames::INITIAL_WINDOW_SIZE, DEFAULT_WINDOW as u32).into(),
            unsent: request.body.clone(),
            capture: captured.then(|| Box::new(CapturedResponse::new(self.limits.body))),
            ..Stream::default()
        });
        self.next_id += 2;
        if has_body {
            self.send_bodies(out);
        }
    }

    /// Read a frame or a part of one, and append replies to `out`. Return the number of bytes consumed, and the event that
    /// a complete frame caused, if any.
    #[inline]
    pub fn advance(&mut self, data: &[u8], out: &mut Vec<u8>) -> Result<(usize, Option<StreamEvent>), Violation> {
        if self.carry.is_empty() {
            if let Some(frame) = Frame::parse(data)? {
                return Ok((HEAD_LENGTH + frame.payload.len(), self.handle(frame, out)?));
            }
            self.carry.extend_from_slice(data);
            return Ok((data.len(), None));
        }
        let needed = Frame::length(&self.carry)?.unwrap_or(HEAD_LENGTH);
        let take = data.len().min(needed - self.carry.len());
        self.carry.extend_from_slice(&data[..take]);
        let mut carry = std::mem::take(&mut self.carry);
        let event = match Frame::parse(&carry)? {
            Some(frame) => {
                let event = self.handle(frame, out)?;
                carry.clear();
                event
            }
            None => None,
        };
        self.carry = carry;
        Ok((take, event))
    }

    fn handle(&mut self, frame: Frame, out: &mut Vec<u8>) -> Result<Option<StreamEvent>, Violation> {
        if !self.opened && (frame.kind != frames::SETTINGS || frame.has(ACK)) {
            return Err(Violation("first frame is not SETTINGS"));
        }
        if self.block.as_ref().is_some_and(|(id, ..)| frame.kind != frames::CONTINUATION || *id != frame.stream) {
            return Err(Violation("header block is interrupted"));
        }
        match frame.kind {
            frames::DATA => self.data(frame, out),
            frames::HEADERS => {
                let content = frame.content()?;
                self.start_block(frame, content, out)
            }
            frames::CONTINUATION => self.continue_block(frame, out),
            frames::RST_STREAM => {
                frame.number()?;
                let index = self.find(frame.stream)?;
                if let Some(index) = index {
                    self.streams.remove(index);
                }
                Ok(index.map(|index| StreamEvent::Reset { index }))
            }
            frames::SETTINGS => self.apply_settings(frame, out),
            frames::PING => {
                if frame.payload.len() != 8 || frame.stream != 0 {
                    return Err(Violation("PING is not valid"));
                }
                if !frame.has(ACK) {
                    self.replies += 1;
                    frames::push_head(out, 8, frames::PING, ACK, 0);
                    out.extend_from_slice(frame.payload);
                }
                Ok(None)
            }
            frames::GOAWAY => {
                if frame.payload.len() < 8 || frame.stream != 0 {
                    return Err(Violation("GOAWAY is not valid"));
                }
                self.draining = true;
                let last = frames::number(frame.payload) & MAX_STREAM;
                let unprocessed = self.streams.iter().rev().take_while(|stream| stream.id > last).count();
                self.streams.truncate(self.streams.len() - unprocessed);
                Ok(Some(StreamEvent::GoAway { unprocessed }))
            }
            frames::WINDOW_UPDATE => self.update_window(frame, out),
            frames::PUSH_PROMISE => Err(Violation("PUSH_PROMISE although push is disabled")),
            _ => Ok(None), // PRIORITY and extensions
        }
    }

    /// Return the index of an open stream, or `None` if it is closed. Fail if it was never opened.
    #[inline]
    fn find(&self, id: u32) -> Result<Option<usize>, Violation> {
        if id % 2 == 0 || id >= self.next_id {
            return Err(Violation("frame for a stream that was never opened"));
        }
        Ok(self.streams.binary_search_by_key(&id, |stream| stream.id).ok())
    }

    #[inline]
    fn data(&mut self, frame: Frame, out: &mut Vec<u8>) -> Result<Option<StreamEvent>, Violation> {
        let content = frame.content()?;
        let index = self.find(frame.stream)?.ok_or(Violation("DATA for a closed stream"))?;
        let stream = &mut self.streams[index];
        if stream.status == 0 {
            return Err(Violation("DATA before a head"));
        }
        let length = frame.payload.len() as i64;
        self.window -= length;
        stream.window -= length;
        if self.window < 0 || stream.window < 0 {
            return Err(Violation("server violates flow control"));
        }
        let full = self.limits.connection_window();
        if self.window <= full / 2 {
            frames::push_number(out, frames::WINDOW_UPDATE, 0, (full - self.window) as u32);
            self.window = full;
        }
        stream.size += (HEAD_LENGTH + frame.payload.len()) as u64;
        stream.received += content.len() as u64;
        if let Some(capture) = &mut stream.capture {
            capture.append(content);
        }
        if frame.has(END_STREAM) {
            return Ok(Some(self.complete(index, out)));
        }
        let full = i64::from(self.limits.window);
        if stream.window <= full / 2 {
            frames::push_number(out, frames::WINDOW_UPDATE, stream.id, (full - stream.window) as u32);
            stream.window = full;
        }
        Ok(None)
    }

    #[inline]
    fn start_block(
        &mut self,
        frame: Frame,
        content: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Option<StreamEvent>, Violation> {
        let index = self.find(frame.stream)?.ok_or(Violation("HEADERS for a closed stream"))?;
        self.streams[index].size += (HEAD_LENGTH + frame.payload.len()) as u64;
        if frame.has(END_HEADERS) {
            return self.head(index, content, frame.has(END_STREAM), out);
        }
        self.block = Some((frame.stream, frame.has(END_STREAM), content.to_vec()));
        Ok(None)
    }

    fn continue_block(&mut self, frame: Frame, out: &mut Vec<u8>) -> Result<Option<StreamEvent>, Violation> {
        let index = self.find(frame.stream)?;
        let Some((index, (_, ends, block))) = index.zip(self.block.as_mut()) else {
            return Err(Violation("CONTINUATION without HEADERS"));
        };
        block.extend_from_slice(frame.payload);
        self.streams[index].size += (HEAD_LENGTH + frame.payload.len()) as u64;
        if block.len() > BLOCK_LIMIT {
            return Err(Violation("header block is longer than 64 KiB"));
        }
        if !frame.has(END_HEADERS) {
            return Ok(None);
        }
        let (ends, block) = (*ends, std::mem::take(block));
        self.block = None;
        self.head(index, &block, ends, out)
    }

    /// Read a complete header block: an interim head, the final head, or trailers.
    #[inline]
    fn head(
        &mut self,
        index: usize,
        block: &[u8],
        ends: bool,
        out: &mut Vec<u8>,
    ) -> Result<Option<StreamEvent>, Violation> {
        let stream = &mut self.streams[index];
        let trailers = stream.status != 0;
        let (mut status, mut length, mut lines) = (None, None, Vec::new());
        let captured = stream.capture.is_some() && !trailers;
        let wanted = |name: &[u8]| captured || name == b":status" || name == b"content-length";
        self.decoder.decode(block, wanted, |name, value| {
            match name {
                b":status" => status = decimal(value),
                b"content-length" => length = Some(decimal(value)),
                _ => {}
            }
            if captured && name != b":status" && lines.len() <= BLOCK_LIMIT {
                lines.extend_from_slice(&[name, b": ", value, b"\r\n"].concat());
            }
        })?;
        if lines.len() > BLOCK_LIMIT {
            return Err(Violation("decoded header section is too long")); // a short block can encode a long section
        }
        if trailers {
            let valid = ends && status.is_none();
            return if valid { Ok(Some(self.complete(index, out))) } else { Err(Violation("trailers are not valid")) };
        }
        let status = status.filter(|status| (100..1000).contains(status) && *status != 101);
        let status = status.ok_or(Violation("head without a valid status"))? as u16;
        if status < 200 {
            return if ends { Err(Violation("interim response ends the stream")) } else { Ok(None) };
        }
        stream.status = status;
        stream.length = length.map(|length| length.ok_or(Violation("Content-Length is not a number"))).transpose()?;
        if let Some(capture) = &mut stream.capture {
            capture.head = [format!("HTTP/2 {status}\r\n").as_bytes(), &lines, b"\r\n"].concat();
        }
        Ok(ends.then(|| self.complete(index, out)))
    }

    /// Remove a stream with a complete response. If a part of the request body is still unsent, cancel the stream.
    #[inline]
    fn complete(&mut self, index: usize, out: &mut Vec<u8>) -> StreamEvent {
        let stream = self.streams.remove(index).unwrap_or_default();
        if !stream.unsent.is_empty() {
            frames::push_number(out, frames::RST_STREAM, stream.id, CANCEL);
        }
        let bodiless = stream.bodiless || stream.status == 304;
        let malformed = stream.length.is_some_and(|length| length != stream.received && !bodiless);
        let (status, size, capture) = (stream.status, stream.size, stream.capture);
        StreamEvent::Response { index, status, size, malformed, capture }
    }

    fn apply_settings(&mut self, frame: Frame, out: &mut Vec<u8>) -> Result<Option<StreamEvent>, Violation> {
        if frame.stream != 0 || frame.has(ACK) && !frame.payload.is_empty() {
            return Err(Violation("SETTINGS is not valid"));
        }
        if frame.has(ACK) {
            return Ok(None);
        }
        let initial_window = |settings: &PeerSettings| settings.get(frames::INITIAL_WINDOW_SIZE, DEFAULT_WINDOW as u32);
        let before = i64::from(initial_window(&self.settings));
        self.settings.update(frame.payload)?;
        let change = i64::from(initial_window(&self.settings)) - before;
        self.streams.iter_mut().for_each(|stream| stream.send_window += change);
        if (self.settings.get(frames::HEADER_TABLE_SIZE, hpack::TABLE_SIZE as u32) as usize) < hpack::TABLE_SIZE {
            self.table = TableState::TooLarge;
        }
        self.replies += 1;
        frames::push_head(out, 0, frames::SETTINGS, ACK, 0);
        self.send_bodies(out);
        let first = !std::mem::replace(&mut self.opened, true);
        Ok(first.then_some(StreamEvent::Opened))
    }

    fn update_window(&mut self, frame: Frame, out: &mut Vec<u8>) -> Result<Option<StreamEvent>, Violation> {
        let increment = i64::from(frame.number()? & MAX_STREAM);
        let window = if frame.stream == 0 {
            Some(&mut self.send_window)
        } else {
            self.find(frame.stream)?.map(|index| &mut self.streams[index].send_window)
        };
        let Some(window) = window else { return Ok(None) };
        *window += increment;
        if increment == 0 || *window > MAX_WINDOW {
            return Err(Violation("WINDOW_UPDATE has an invalid value"));
        }
        self.send_bodies(out);
        Ok(None)
    }

    /// Append as much of the request bodies as the server's windows permit.
    fn send_bodies(&mut self, out: &mut Vec<u8>) {
        let frame_limit = i64::from(self.settings.get(frames::MAX_FRAME_SIZE, 16_384));
        for stream in &mut self.streams {
            while !stream.unsent.is_empty() {
                let part = self.send_window.min(stream.send_window).min(frame_limit).min(stream.unsent.len() as i64);
                if part <= 0 {
                    break;
                }
                let rest = stream.unsent.split_off(part as usize);
                let flags = if rest.is_empty() { END_STREAM } else { 0 };
                frames::push_head(out, stream.unsent.len(), frames::DATA, flags, stream.id);
                out.extend_from_slice(&stream.unsent);
                stream.unsent = rest;
                stream.send_window -= part;
                self.send_window -= part;
            }
        }
    }
}

fn decimal(digits: &[u8]) -> Option<u64> {
    std::str::from_utf8(digits).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))?.parse().ok()
}

#[cfg(test)]
mod tests;
