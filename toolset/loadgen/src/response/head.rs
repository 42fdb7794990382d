//! A parser for response heads: status line and headers.

use std::mem::MaybeUninit;

use httparse::{ParserConfig, Status, parse_headers};
use memchr::memchr_iter;

/// Maximum number of header lines in a head.
const HEADERS: usize = 256;

/// A response that RFC 9112 does not allow, or whose end cannot be determined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Violation(pub &'static str);

/// How the end of the body is determined (RFC 9112 section 6.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Framing {
    #[default]
    None, // no body
    Length(u64), // this many bytes
    Chunked,     // chunks until a chunk of size zero
    UntilClose,  // until the peer closes the connection
}

/// The fields of a head that matter for framing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Head {
    pub status: u16, // 100 to 999
    pub framing: Framing,
    pub close: bool, // whether the peer closes the connection after the response
}

/// The most recently parsed head. Servers usually repeat the same bytes, so most heads need not be parsed again.
#[derive(Debug, Default)]
pub struct HeadCache {
    bytes: Vec<u8>,
    head: Head,
}

impl HeadCache {
    #[inline]
    pub(super) fn get(&self, data: &[u8]) -> Option<(Head, usize)> {
        (!self.bytes.is_empty() && data.starts_with(&self.bytes)).then_some((self.head, self.bytes.len()))
    }

    pub(super) fn put(&mut self, bytes: &[u8], head: Head) {
        self.bytes.clear();
        self.bytes.extend_from_slice(bytes);
        self.head = head;
    }
}

/// Parse a head, including the empty line.
pub fn parse_head(bytes: &[u8]) -> Result<Head, Violation> {
    let mut lines = [MaybeUninit::uninit(); HEADERS];
    let mut parsed = httparse::Response::new(&mut []);
    let complete = ParserConfig::default()
        .parse_response_with_uninit_headers(&mut parsed, bytes, &mut lines)
        .map_err(violation)?;
    if complete.is_partial() || !ended_by_crlf(bytes) {
        return Err(Violation("line ends without a carriage return"));
    }
    let status = parsed.code.unwrap_or_default();
    if !(100..1000).contains(&status) {
        return Err(Violation("invalid status line"));
    }
    let mut length: Option<u64> = None;
    let mut chunked = false;
    let mut close = parsed.version == Some(0);
    for httparse::Header { name, value } in &*parsed.headers {
        if name.eq_ignore_ascii_case("content-length") {
            let value = decimal(value).ok_or(Violation("Content-Length is not a number"))?;
            if length.is_some_and(|other| other != value) {
                return Err(Violation("different Content-Length headers"));
            }
            length = Some(value);
        } else if name.eq_ignore_ascii_case("transfer-encoding") {
            if chunked || !value.eq_ignore_ascii_case(b"chunked") {
                return Err(Violation("Transfer-Encoding is not chunked"));
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

fn violation(error: httparse::Error) -> Violation {
    match error {
        httparse::Error::Version => Violation("not HTTP/1.1 or HTTP/1.0"),
        httparse::Error::Status => Violation("invalid status line"),
        httparse::Error::TooManyHeaders => Violation("too many header lines"),
        _ => Violation("invalid header line"),
    }
}

/// Return whether each line ends with CRLF. httparse also accepts a bare LF, which a proxy may interpret differently
/// (RFC 9112 section 2.2).
pub fn ended_by_crlf(bytes: &[u8]) -> bool {
    memchr_iter(b'\n', bytes).all(|at| at > 0 && bytes[at - 1] == b'\r')
}

/// Parse a header section, including the empty line, and apply `read` to each header. Return the results, or `None` if
/// the section is invalid.
pub fn headers<T>(lines: &[u8], read: impl Fn(&str, &[u8]) -> T) -> Option<Vec<T>> {
    let mut parsed = [httparse::EMPTY_HEADER; HEADERS];
    match parse_headers(lines, &mut parsed) {
        Ok(Status::Complete((used, headers))) if used == lines.len() && ended_by_crlf(lines) => {
            Some(headers.iter().map(|header| read(header.name, header.value)).collect())
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
