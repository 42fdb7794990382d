//! Reads HTTP/1.1 responses from a stream of bytes: grammar and framing of RFC 9112, no allocation in the steady state.

use std::sync::LazyLock;

use memchr::memchr;
use memchr::memmem::Finder;

/// The longest head or trailer section that is read, in bytes.
const HEAD_LIMIT: usize = 64 * 1024;
/// The longest line of a chunk size with its extensions, in bytes.
const LINE_LIMIT: usize = 4 * 1024;

static HEAD_END: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\r\n\r\n"));

/// What a server did that RFC 9112 does not allow, or that leaves the end of a response unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Violation(pub &'static str);

/// How the end of a body is found (RFC 9112 section 6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// There is no body.
    None,
    /// So many bytes.
    Length(u64),
    /// Chunks up to one of size zero.
    Chunked,
    /// All bytes until the peer closes.
    UntilClose,
}

/// What a head says about its response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// The status code, 100 to 999.
    pub status: u16,
    /// How a body ends, unless the request was HEAD.
    pub framing: Framing,
    /// Whether the peer closes the connection after it.
    pub close: bool,
}

/// A response that has come to its last byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Response {
    /// The status code, 200 to 999.
    pub status: u16,
    /// Whether the connection ends with it.
    pub close: bool,
    /// Bytes on the wire: heads (also those of interim responses), framing and body.
    pub size: u64,
    /// Bytes of the body without its framing.
    pub body: u64,
}

/// Takes what a response is made of, while it comes.
pub trait Sink {
    /// The whole head with the empty line that ends it.
    fn head(&mut self, bytes: &[u8]);
    /// The next bytes of the body, without framing.
    fn body(&mut self, bytes: &[u8]);
}

/// The head read last: servers repeat theirs byte by byte, and what was parsed once need not be parsed again.
#[derive(Debug)]
pub struct HeadCache {
    bytes: Vec<u8>,
    head: Head,
}

impl Default for HeadCache {
    fn default() -> Self {
        let head = Head { status: 0, framing: Framing::None, close: false };
        Self { bytes: Vec::with_capacity(1024), head }
    }
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Head,
    Length(u64),
    ChunkSize,
    ChunkData(u64),
    ChunkEnd,
    Trailer(usize), // bytes of trailer lines so far
    UntilClose,
}

/// The reading end of one connection: it is told which bytes came, and tells when a response is complete.
#[derive(Debug)]
pub struct Reader {
    state: State,
    carry: Vec<u8>, // of a head or line that is not complete yet
    status: u16,
    close: bool,
    size: u64,
    body: u64,
}

impl Default for Reader {
    fn default() -> Self {
        Self { state: State::Head, carry: Vec::new(), status: 0, close: false, size: 0, body: 0 }
    }
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
    ///
    /// `headless` says that the request was HEAD, whose response has no body whatever its header says.
    #[inline]
    pub fn advance<S: Sink>(
        &mut self,
        data: &[u8],
        headless: bool,
        cache: &mut HeadCache,
        sink: &mut S,
    ) -> Result<(usize, Option<Response>), Violation> {
        let mut at = 0;
        while at < data.len() {
            let (used, complete) = self.step(&data[at..], headless, cache, sink)?;
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
        self.body = 0;
    }

    #[inline]
    fn finish(&mut self) -> Response {
        let response = Response { status: self.status, close: self.close, size: self.size, body: self.body };
        self.start();
        response
    }

    /// One piece: bytes used, and whether the response is complete. Uses at least one byte.
    #[inline]
    fn step<S: Sink>(
        &mut self,
        data: &[u8],
        headless: bool,
        cache: &mut HeadCache,
        sink: &mut S,
    ) -> Result<(usize, bool), Violation> {
        match self.state {
            State::Head => self.head(data, headless, cache, sink),
            State::Length(left) => {
                let take = self.take(data, left, sink);
                self.state = State::Length(left - take as u64);
                Ok((take, left == take as u64))
            }
            State::UntilClose => {
                let take = self.take(data, u64::MAX, sink);
                Ok((take, false))
            }
            State::ChunkData(left) => {
                let take = self.take(data, left, sink);
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
                let Some((used, kind)) =
                    self.line(data, LINE_LIMIT, |line| (line.is_empty(), header(line).is_some()))?
                else {
                    return Ok((data.len(), false));
                };
                let so_far = so_far + used;
                self.state = State::Trailer(so_far);
                match kind {
                    (true, _) => Ok((used, true)),
                    (false, true) if so_far <= HEAD_LIMIT => Ok((used, false)),
                    _ => Err(Violation("a trailer is not a header line, or without end")),
                }
            }
        }
    }

    #[inline]
    fn take<S: Sink>(&mut self, data: &[u8], left: u64, sink: &mut S) -> usize {
        let take = data.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        sink.body(&data[..take]);
        self.body += take as u64;
        take
    }

    #[inline]
    fn head<S: Sink>(
        &mut self,
        data: &[u8],
        headless: bool,
        cache: &mut HeadCache,
        sink: &mut S,
    ) -> Result<(usize, bool), Violation> {
        if self.carry.is_empty() {
            if let Some((head, used)) = cache.get(data) {
                sink.head(&data[..used]);
                return Ok((used, self.begin(head, headless)?));
            }
            require_start(data)?;
            if let Some(end) = HEAD_END.find(data) {
                let used = end + 4;
                let head = parse_head(&data[..used])?;
                cache.put(&data[..used], head);
                sink.head(&data[..used]);
                return Ok((used, self.begin(head, headless)?));
            }
            self.carry.extend_from_slice(data);
        } else {
            let before = self.carry.len();
            self.carry.extend_from_slice(data);
            require_start(&self.carry)?;
            let from = before.saturating_sub(3);
            if let Some(end) = HEAD_END.find(&self.carry[from..]) {
                let length = from + end + 4;
                let head = parse_head(&self.carry[..length])?;
                sink.head(&self.carry[..length]);
                self.carry.clear();
                return Ok((length - before, self.begin(head, headless)?));
            }
        }
        if self.carry.len() > HEAD_LIMIT {
            return Err(Violation("no end of the header section within 64 KiB"));
        }
        Ok((data.len(), false))
    }

    /// What comes after this head; true when that is nothing.
    #[inline]
    fn begin(&mut self, head: Head, headless: bool) -> Result<bool, Violation> {
        if head.status < 200 {
            return if head.status == 101 { Err(Violation("switches protocols unasked")) } else { Ok(false) };
        }
        self.status = head.status;
        self.close = head.close;
        self.body = 0;
        let framing = if headless { Framing::None } else { head.framing };
        self.state = match framing {
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

    /// The next line without its CRLF, through `read`; None while its end has not come (then all bytes are kept).
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
        if end.is_none() {
            self.carry.extend_from_slice(data);
            return Ok(None);
        }
        let value = if self.carry.is_empty() {
            read(without_end(&data[..used])?)
        } else {
            self.carry.extend_from_slice(&data[..used]);
            let value = read(without_end(&self.carry)?);
            self.carry.clear();
            value
        };
        Ok(Some((used, value)))
    }
}

fn without_end(line: &[u8]) -> Result<&[u8], Violation> {
    line.strip_suffix(b"\r\n").ok_or(Violation("a line ends without a carriage return"))
}

/// Refuse at once what is no response, instead of waiting for the end of its head.
fn require_start(data: &[u8]) -> Result<(), Violation> {
    let expected = b"HTTP/1.";
    let length = data.len().min(expected.len());
    if data[..length] == expected[..length] { Ok(()) } else { Err(Violation("not a status line of HTTP/1")) }
}

/// Parse a head that ends with its empty line.
pub fn parse_head(bytes: &[u8]) -> Result<Head, Violation> {
    let text = bytes.strip_suffix(b"\r\n\r\n").ok_or(Violation("a head without end"))?;
    let first = Finder::new(b"\r\n").find(text).unwrap_or(text.len());
    let (status, old) = status_line(&text[..first])?;
    let mut length: Option<u64> = None;
    let mut chunked = false;
    let mut close = old;
    let mut rest = text.get(first + 2..).unwrap_or_default();
    while !rest.is_empty() {
        let end = Finder::new(b"\r\n").find(rest).unwrap_or(rest.len());
        let (name, value) = header(&rest[..end]).ok_or(Violation("a line that is not a header"))?;
        rest = rest.get(end + 2..).unwrap_or_default();
        if name.eq_ignore_ascii_case(b"content-length") {
            let this = decimal(value).ok_or(Violation("a Content-Length that is not a number"))?;
            if length.is_some_and(|other| other != this) {
                return Err(Violation("two different Content-Length"));
            }
            length = Some(this);
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            if chunked || !value.eq_ignore_ascii_case(b"chunked") {
                return Err(Violation("a Transfer-Encoding other than chunked"));
            }
            chunked = true;
        } else if name.eq_ignore_ascii_case(b"connection") {
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

/// Status code, and whether it is of HTTP/1.0.
fn status_line(line: &[u8]) -> Result<(u16, bool), Violation> {
    let (version, rest) = line.split_at_checked(9).ok_or(Violation("a status line that is too short"))?;
    let old = match version {
        b"HTTP/1.1 " => false,
        b"HTTP/1.0 " => true,
        _ => return Err(Violation("neither HTTP/1.1 nor HTTP/1.0")),
    };
    let (code, reason) = rest.split_at_checked(3).ok_or(Violation("a status line without status"))?;
    let status = decimal(code).ok_or(Violation("a status that is not a number"))? as u16;
    if status < 100 || !(reason.is_empty() || reason[0] == b' ') || !reason.iter().all(|&byte| visible(byte)) {
        return Err(Violation("a status line that is none"));
    }
    Ok((status, old))
}

/// Name and value of a header line, by the grammar of RFC 9110 section 5.
pub fn header(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let colon = memchr(b':', line)?;
    let (name, value) = (&line[..colon], &line[colon + 1..]);
    let token = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    (!name.is_empty() && name.iter().all(token) && value.iter().all(|&byte| visible(byte)))
        .then(|| (name, value.trim_ascii()))
}

fn visible(byte: u8) -> bool {
    byte == b'\t' || (byte >= b' ' && byte != 0x7f)
}

fn decimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || digits.len() > 15 {
        return None;
    }
    digits.iter().try_fold(0u64, |sum, byte| byte.is_ascii_digit().then(|| sum * 10 + u64::from(byte - b'0')))
}

fn chunk_size(line: &[u8]) -> Result<u64, Violation> {
    let end = memchr(b';', line).unwrap_or(line.len());
    let digits = line[..end].trim_ascii_end();
    let wrong = Violation("a chunk size that is not a hexadecimal number");
    if digits.is_empty() || digits.len() > 12 {
        return Err(wrong);
    }
    digits.iter().try_fold(0u64, |sum, &byte| {
        char::from(byte).to_digit(16).map(|digit| sum * 16 + u64::from(digit)).ok_or(wrong)
    })
}

#[cfg(test)]
mod tests;
