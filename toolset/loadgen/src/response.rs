//! An incremental parser for HTTP/1.1 responses. It follows RFC 9112 and rarely allocates memory.

mod head;

use std::sync::LazyLock;

use httparse::{Status, parse_chunk_size};
use memchr::memchr;
use memchr::memmem::Finder;

use self::head::{Framing, Head, parse_head};
pub use self::head::{HeadCache, Violation, ended_by_crlf, headers};

/// Maximum length of a head or trailer section, in bytes.
const HEAD_LIMIT: usize = 64 * 1024;
/// Maximum length of a chunk-size line or a trailer line, in bytes.
const LINE_LIMIT: usize = 4 * 1024;

static HEAD_END: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\r\n\r\n"));

/// A complete response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Response {
    pub status: u16, // 200 to 999
    pub close: bool, // whether the peer closes the connection afterwards
    pub size: u64,   // bytes on the wire, including interim responses, heads and framing
}

/// Range to which the limit for captured bodies is clamped, in bytes. Bodies longer than the limit are truncated.
const BODY_LIMITS: (usize, usize) = (1 << 20, 16 << 20);

/// Head and body of a response.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CapturedResponse {
    pub head: Vec<u8>,   // head of the final response, with the empty line
    pub body: Vec<u8>,   // body without framing
    pub truncated: bool, // whether the body exceeds the limit
    limit: usize,
}

impl CapturedResponse {
    /// Create a capture. `limit` is the maximum body size in bytes, clamped to `BODY_LIMITS`.
    pub fn new(limit: usize) -> Self {
        Self { limit: limit.clamp(BODY_LIMITS.0, BODY_LIMITS.1), ..Self::default() }
    }

    /// Append a part of the body, up to the limit.
    #[inline]
    pub fn append(&mut self, part: &[u8]) {
        let room = self.limit.saturating_sub(self.body.len());
        self.truncated |= part.len() > room;
        self.body.extend_from_slice(&part[..part.len().min(room)]);
    }

    /// Release the memory of a long body.
    pub fn release(&mut self) {
        if self.body.capacity() > BODY_LIMITS.0 {
            self.body = Vec::new();
        }
    }
}

/// Where to store the response being read; `None` if it is not captured.
type Sink<'a> = Option<&'a mut CapturedResponse>;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Head,
    Length(u64),
    ChunkSize,
    ChunkData(u64),
    ChunkEnd,
    Trailer(usize), // length of the trailer lines so far
    UntilClose,
}

/// A parser for the responses on a connection.
#[derive(Debug, Default)]
pub struct Reader {
    pub bodiless: bool, // whether the next response has no body, because the request was HEAD
    state: State,
    carry: Vec<u8>, // start of an incomplete head or line
    status: u16,
    close: bool,
    size: u64,
}

impl Reader {
    /// Return whether the next byte starts a response.
    #[inline]
    pub fn idle(&self) -> bool {
        self.state == State::Head && self.carry.is_empty() && self.size == 0
    }

    /// Reset the reader for a new connection.
    pub fn reset(&mut self) {
        self.carry.clear();
        self.start();
    }

    /// Parse until a response is complete or the data ends. Return the number of bytes consumed, and the complete
    /// response, if any.
    #[inline]
    pub fn advance(
        &mut self,
        data: &[u8],
        cache: &mut HeadCache,
        mut sink: Sink,
    ) -> Result<(usize, Option<Response>), Violation> {
        let mut at = 0;
        while at < data.len() {
            let (used, complete) = self.step(&data[at..], cache, &mut sink)?;
            at += used;
            self.size += used as u64;
            if complete {
                return Ok((at, Some(self.finish())));
            }
        }
        Ok((at, None))
    }

    /// Handle the end of the connection. If the end completes a response, return the response.
    pub fn end(&mut self) -> Option<Response> {
        (self.state == State::UntilClose).then(|| self.finish())
    }

    fn start(&mut self) {
        self.state = State::Head;
        self.size = 0;
    }

    #[inline]
    fn finish(&mut self) -> Response {
        let response = Response { status: self.status, close: self.close, size: self.size };
        self.start();
        response
    }

    /// Parse a head, a line or a part of the body. Return the number of bytes consumed (at least 1), and whether the
    /// response is complete.
    #[inline]
    fn step(&mut self, data: &[u8], cache: &mut HeadCache, sink: &mut Sink) -> Result<(usize, bool), Violation> {
        match self.state {
            State::Head => self.head(data, cache, sink),
            State::Length(left) => {
                let take = take(data, left, sink);
                self.state = State::Length(left - take as u64);
                Ok((take, left == take as u64))
            }
            State::UntilClose => Ok((take(data, u64::MAX, sink), false)),
            State::ChunkData(left) => {
                let take = take(data, left, sink);
                let left = left - take as u64;
                self.state = if left == 0 { State::ChunkEnd } else { State::ChunkData(left) };
                Ok((take, false))
            }
            State::ChunkSize => {
                let Some((used, size)) = self.line(data, LINE_LIMIT, chunk_size)? else {
                    return Ok((data.len(), false));
                };
                self.state = if size? == 0 { State::Trailer(0) } else { State::ChunkData(size?) };
                Ok((used, false))
            }
            State::ChunkEnd => {
                let have = self.carry.len();
                let take = data.len().min(2 - have);
                if data[..take] != b"\r\n"[have..have + take] {
                    return Err(Violation("chunk is longer than its size"));
                }
                self.carry.extend_from_slice(&data[..take]);
                if self.carry.len() == 2 {
                    self.carry.clear();
                    self.state = State::ChunkSize;
                }
                Ok((take, false))
            }
            State::Trailer(length) => {
                let Some((used, last)) = self.line(data, LINE_LIMIT, trailer)? else { return Ok((data.len(), false)) };
                let length = length + used;
                self.state = State::Trailer(length);
                match last {
                    Some(last) if last || length <= HEAD_LIMIT => Ok((used, last)),
                    _ => Err(Violation("trailer section is invalid or too long")),
                }
            }
        }
    }

    #[inline]
    fn head(&mut self, data: &[u8], cache: &mut HeadCache, sink: &mut Sink) -> Result<(usize, bool), Violation> {
        if self.carry.is_empty() {
            if let Some((head, used)) = cache.get(data) {
                keep_head(sink, &data[..used]);
                return Ok((used, self.begin(head)?));
            }
            require_start(data)?;
            if let Some(end) = HEAD_END.find(data) {
                let used = end + 4;
                require_limit(used)?;
                let head = parse_head(&data[..used])?;
                cache.put(&data[..used], head);
                keep_head(sink, &data[..used]);
                return Ok((used, self.begin(head)?));
            }
            self.carry.extend_from_slice(data);
        } else {
            let before = self.carry.len();
            self.carry.extend_from_slice(data);
            require_start(&self.carry)?;
            let from = before.saturating_sub(3);
            if let Some(end) = HEAD_END.find(&self.carry[from..]) {
                let length = from + end + 4;
                require_limit(length)?;
                let head = parse_head(&self.carry[..length])?;
                keep_head(sink, &self.carry[..length]);
                self.carry.clear();
                return Ok((length - before, self.begin(head)?));
            }
        }
        require_limit(self.carry.len())?;
        Ok((data.len(), false))
    }

    /// Enter the state that follows a head. Return true if the response has no body and is therefore complete.
    #[inline]
    fn begin(&mut self, head: Head) -> Result<bool, Violation> {
        if head.status < 200 {
            return if head.status == 101 { Err(Violation("unsolicited protocol switch")) } else { Ok(false) };
        }
        self.status = head.status;
        self.close = head.close;
        self.state = match head.framing {
            _ if self.bodiless => return Ok(true),
            Framing::None | Framing::Length(0) => return Ok(true),
            Framing::Length(length) => State::Length(length),
            Framing::Chunked => State::ChunkSize,
            Framing::UntilClose => {
                self.close = true;
                State::UntilClose
            }
        };
        Ok(false)
    }

    /// Apply `read` to the next line. Return the number of bytes consumed and the result of `read`. If the line is
    /// incomplete, buffer it and return `None`.
    fn line<T>(
        &mut self,
        data: &[u8],
        limit: usize,
        read: impl Fn(&[u8]) -> T,
    ) -> Result<Option<(usize, T)>, Violation> {
        let end = memchr(b'\n', data);
        let used = end.map_or(data.len(), |end| end + 1);
        if self.carry.len() + used > limit {
            return Err(Violation("line of a chunked body is too long"));
        }
        if end.is_some() && self.carry.is_empty() {
            return Ok(Some((used, read(&data[..used]))));
        }
        self.carry.extend_from_slice(&data[..used]);
        if end.is_none() {
            return Ok(None);
        }
        let value = read(&self.carry);
        self.carry.clear();
        Ok(Some((used, value)))
    }
}

#[inline]
fn take(data: &[u8], left: u64, sink: &mut Sink) -> usize {
    let take = data.len().min(usize::try_from(left).unwrap_or(usize::MAX));
    if let Some(capture) = sink {
        capture.append(&data[..take]);
    }
    take
}

#[inline]
fn keep_head(sink: &mut Sink, bytes: &[u8]) {
    if let Some(capture) = sink {
        capture.head.clear();
        capture.head.extend_from_slice(bytes);
        capture.body.clear();
        capture.truncated = false;
    }
}

/// Return an error if a head of this length exceeds the limit.
fn require_limit(length: usize) -> Result<(), Violation> {
    if length > HEAD_LIMIT { Err(Violation("header section is longer than 64 KiB")) } else { Ok(()) }
}

/// Reject data that cannot be the start of a response, even before the head is complete.
fn require_start(data: &[u8]) -> Result<(), Violation> {
    let expected = b"HTTP/1.";
    let length = data.len().min(expected.len());
    if data[..length] == expected[..length] { Ok(()) } else { Err(Violation("not an HTTP/1 status line")) }
}

/// Parse a chunk-size line, including the CRLF.
fn chunk_size(line: &[u8]) -> Result<u64, Violation> {
    match parse_chunk_size(line) {
        Ok(Status::Complete((used, size))) if used == line.len() => Ok(size),
        _ => Err(Violation("chunk size is not a hexadecimal number")),
    }
}

/// Return true for the empty line that ends the trailers, false for a trailer, and `None` for an invalid line.
fn trailer(line: &[u8]) -> Option<bool> {
    if line == b"\r\n" {
        return Some(true);
    }
    let section = [line, b"\r\n"].concat();
    headers(&section, |_, _| ()).map(|_| false)
}

#[cfg(test)]
mod tests;
