//! Reads HTTP/1.1 responses from a stream of bytes: grammar and framing of RFC 9112, no allocation in the steady state.

use std::mem::MaybeUninit;
use std::sync::LazyLock;

use httparse::{ParserConfig, Status, parse_chunk_size, parse_headers};
use memchr::memmem::Finder;
use memchr::{memchr, memchr_iter};

/// The longest head or trailer section that is read, in bytes.
const HEAD_LIMIT: usize = 64 * 1024;
/// The most header lines of a head.
const HEADERS: usize = 256;
/// The longest line of a chunk size with its extensions, in bytes.
const LINE_LIMIT: usize = 4 * 1024;

static HEAD_END: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\r\n\r\n"));

/// What a server did that RFC 9112 does not allow, or that leaves the end of a response unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Violation(pub &'static str);

/// How the end of a body is found (RFC 9112 section 6.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Framing {
    #[default]
    None, // there is no body
    Length(u64), // so many bytes
    Chunked,     // chunks up to one of size zero
    UntilClose,  // all bytes until the peer closes
}

/// What a head says about its response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Head {
    pub status: u16,      // the status code, 100 to 999
    pub framing: Framing, // how a body ends
    pub close: bool,      // whether the peer closes the connection after it
}

/// A response that has come to its last byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Response {
    pub status: u16, // the status code, 200 to 999
    pub close: bool, // whether the connection ends with it
    pub size: u64,   // bytes on the wire: heads (also those of interim responses), framing and body
}

/// Bytes of a body that are kept; no answer of any test comes near.
const BODY_LIMIT: usize = 1 << 20;

/// What is kept of a response.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Capture {
    pub head: Vec<u8>, // the head of the response itself, with the empty line at its end
    pub body: Vec<u8>, // the body without framing
}

/// Where a response goes while it comes, if it is kept.
type Sink<'a> = Option<&'a mut Capture>;

/// The head read last: servers repeat theirs byte by byte, and what was parsed once need not be parsed again.
#[derive(Debug, Default)]
pub struct HeadCache {
    bytes: Vec<u8>,
    head: Head,
}

impl HeadCache {
    #[inline]
    fn get(&self, data: &[u8]) -> Option<(Head, usize)> {
        (!self.bytes.is_empty() && data.starts_with(&self.bytes)).then_some((self.head, self.bytes.len()))
    }

    fn put(&mut self, bytes: &[u8], head: Head) {
        self.bytes.clear();
        self.bytes.extend_from_slice(bytes);
        self.head = head;
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Head,
    Length(u64),
    ChunkSize,
    ChunkData(u64),
    ChunkEnd,
    Trailer(usize), // bytes of trailer lines so far
    UntilClose,
}

/// The reading end of one connection: it is told which bytes came, and tells when a response is complete.
#[derive(Debug, Default)]
pub struct Reader {
    pub bodiless: bool, // whether the response that begins has no body, as that to HEAD
    state: State,
    carry: Vec<u8>, // of a head or line that is not complete yet
    status: u16,
    close: bool,
    size: u64,
}

impl Reader {
    /// Whether the next byte is the first one of a response.
    #[inline]
    pub fn idle(&self) -> bool {
        self.state == State::Head && self.carry.is_empty() && self.size == 0
    }

    /// Forget everything: a new connection.
    pub fn reset(&mut self) {
        self.carry.clear();
        self.start();
    }

    /// Read until a response is complete or the bytes are used up; returns how many were used.
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

    /// The peer has closed: the response that ended by it, if one did.
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

    /// One piece: bytes used, and whether the response is complete. Uses at least one byte.
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
                    return Err(Violation("a chunk is longer than its size"));
                }
                self.carry.extend_from_slice(&data[..take]);
                if self.carry.len() == 2 {
                    self.carry.clear();
                    self.state = State::ChunkSize;
                }
                Ok((take, false))
            }
            State::Trailer(so_far) => {
                let Some((used, last)) = self.line(data, LINE_LIMIT, trailer)? else { return Ok((data.len(), false)) };
                let so_far = so_far + used;
                self.state = State::Trailer(so_far);
                match last {
                    Some(last) if last || so_far <= HEAD_LIMIT => Ok((used, last)),
                    _ => Err(Violation("a trailer is not a header line, or without end")),
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

    /// What comes after this head; true when that is nothing.
    #[inline]
    fn begin(&mut self, head: Head) -> Result<bool, Violation> {
        if head.status < 200 {
            return if head.status == 101 { Err(Violation("switches protocols unasked")) } else { Ok(false) };
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

    /// The next line through `read`; None while its end has not come (then all bytes are kept).
    fn line<T>(
        &mut self,
        data: &[u8],
        limit: usize,
        read: impl Fn(&[u8]) -> T,
    ) -> Result<Option<(usize, T)>, Violation> {
        let end = memchr(b'\n', data);
        let used = end.map_or(data.len(), |end| end + 1);
        if self.carry.len() + used > limit {
            return Err(Violation("a line of a chunked body is too long"));
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
        let room = BODY_LIMIT.saturating_sub(capture.body.len());
        capture.body.extend_from_slice(&data[..take.min(room)]);
    }
    take
}

#[inline]
fn keep_head(sink: &mut Sink, bytes: &[u8]) {
    if let Some(capture) = sink {
        capture.head.clear();
        capture.head.extend_from_slice(bytes);
        capture.body.clear();
    }
}

/// Refuse a head of so many bytes where it is too long, however many segments it came in.
fn require_limit(length: usize) -> Result<(), Violation> {
    if length > HEAD_LIMIT { Err(Violation("no end of the header section within 64 KiB")) } else { Ok(()) }
}

/// Refuse at once what is no response, instead of waiting for the end of its head.
fn require_start(data: &[u8]) -> Result<(), Violation> {
    let expected = b"HTTP/1.";
    let length = data.len().min(expected.len());
    if data[..length] == expected[..length] { Ok(()) } else { Err(Violation("not a status line of HTTP/1")) }
}

/// Parse a head that ends with its empty line.
pub fn parse_head(bytes: &[u8]) -> Result<Head, Violation> {
    let mut lines = [MaybeUninit::uninit(); HEADERS];
    let mut parsed = httparse::Response::new(&mut []);
    let complete =
        ParserConfig::default().parse_response_with_uninit_headers(&mut parsed, bytes, &mut lines).map_err(refused)?;
    if complete.is_partial() || !ended_by_crlf(bytes) {
        return Err(Violation("a line ends without a carriage return"));
    }
    let status = parsed.code.unwrap_or_default();
    if !(100..1000).contains(&status) {
        return Err(Violation("a status line that is none"));
    }
    let mut length: Option<u64> = None;
    let mut chunked = false;
    let mut close = parsed.version == Some(0);
    for httparse::Header { name, value } in &*parsed.headers {
        if name.eq_ignore_ascii_case("content-length") {
            let this = decimal(value).ok_or(Violation("a Content-Length that is not a number"))?;
            if length.is_some_and(|other| other != this) {
                return Err(Violation("two different Content-Length"));
            }
            length = Some(this);
        } else if name.eq_ignore_ascii_case("transfer-encoding") {
            if chunked || !value.eq_ignore_ascii_case(b"chunked") {
                return Err(Violation("a Transfer-Encoding other than chunked"));
            }
            chunked = true;
        } else if name.eq_ignore_ascii_case("connection") {
            for option in value.split(|&byte| byte == b',') {
                let option = option.trim_ascii();
                close = (close || option.eq_ignore_ascii_case(b"close")) && !option.eq_ignore_ascii_case(b"keep-alive");
            }
        }
    }
    let framing = match (length, chunked) {
        (Some(_), true) => return Err(Violation("both Content-Length and Transfer-Encoding")),
        _ if status < 200 || status == 204 || status == 304 => Framing::None,
        (None, true) => Framing::Chunked,
        (Some(length), false) => Framing::Length(length),
        (None, false) => Framing::UntilClose,
    };
    Ok(Head { status, framing, close })
}

fn refused(error: httparse::Error) -> Violation {
    match error {
        httparse::Error::Version => Violation("neither HTTP/1.1 nor HTTP/1.0"),
        httparse::Error::Status => Violation("a status line that is none"),
        httparse::Error::TooManyHeaders => Violation("more header lines than any response needs"),
        _ => Violation("a line that is not a header"),
    }
}

/// Whether no line ends with a bare LF, which httparse lets pass and a proxy may read otherwise (RFC 9112 section 2.2).
pub fn ended_by_crlf(bytes: &[u8]) -> bool {
    memchr_iter(b'\n', bytes).all(|at| at > 0 && bytes[at - 1] == b'\r')
}

/// Header lines that end with an empty line, each through `read`; None where one of them is no header line.
pub fn headers<T>(lines: &[u8], read: impl Fn(&str, &[u8]) -> T) -> Option<Vec<T>> {
    let mut parsed = [httparse::EMPTY_HEADER; HEADERS];
    match parse_headers(lines, &mut parsed) {
        Ok(Status::Complete((used, found))) if used == lines.len() && ended_by_crlf(lines) => {
            Some(found.iter().map(|header| read(header.name, header.value)).collect())
        }
        _ => None,
    }
}

fn decimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || digits.len() > 15 {
        return None;
    }
    digits.iter().try_fold(0u64, |sum, byte| byte.is_ascii_digit().then(|| sum * 10 + u64::from(byte - b'0')))
}

/// The size in a line with its CRLF.
fn chunk_size(line: &[u8]) -> Result<u64, Violation> {
    match parse_chunk_size(line) {
        Ok(Status::Complete((used, size))) if used == line.len() => Ok(size),
        _ => Err(Violation("a chunk size that is not a hexadecimal number")),
    }
}

/// Whether a line is a trailer, or the empty one after the last of them.
fn trailer(line: &[u8]) -> Option<bool> {
    if line == b"\r\n" {
        return Some(true);
    }
    let alone = [line, b"\r\n"].concat();
    headers(&alone, |_, _| ()).map(|_| false)
}

#[cfg(test)]
mod tests;
