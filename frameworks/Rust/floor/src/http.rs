//! The subset of HTTP/1.1 that the benchmark needs: a request parser and a response writer.

use std::mem::MaybeUninit;

use crate::random::clamped;

/// Maximum length of a request head, and of a request body, in bytes.
const LONGEST: usize = 64 * 1024;
const MAX_HEADERS: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Route {
    Json,
    Plaintext,
    Db,
    Queries(usize),
    CachedQueries(usize),
    Updates(usize),
    Fortunes,
    Delay(u64),
    FanOut(usize),
    Refused(Status),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Status {
    Ok,
    BadRequest,
    NotFound,
    MethodNotAllowed,
    ContentTooLarge,
    HeaderFieldsTooLarge,
    NotImplemented,
    BadGateway,
    Unavailable,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Request {
    pub route: Route,
    /// Whether the method is HEAD, in which case the response has no body.
    pub head: bool,
    /// Whether the connection closes after the response.
    pub close: bool,
    /// Length of the request, in bytes.
    pub length: usize,
}

impl Request {
    fn refused(status: Status) -> Option<Self> {
        Some(Self { route: Route::Refused(status), head: false, close: true, length: 0 })
    }
}

/// Parses the first request in `bytes`, or returns None if it is incomplete. For invalid HTTP, returns a request with
/// the route `Refused`, whose response closes the connection.
pub fn parse(bytes: &[u8]) -> Option<Request> {
    let mut headers = [const { MaybeUninit::uninit() }; MAX_HEADERS];
    let mut request = httparse::Request::new(&mut []);
    let head_length = match request.parse_with_uninit_headers(bytes, &mut headers) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) if bytes.len() > LONGEST => {
            return Request::refused(Status::HeaderFieldsTooLarge);
        }
        Ok(httparse::Status::Partial) => return None,
        Err(httparse::Error::TooManyHeaders) => return Request::refused(Status::HeaderFieldsTooLarge),
        Err(_) => return Request::refused(Status::BadRequest),
    };
    let old = request.version == Some(0);
    let (mut close, mut named, mut body) = (old, old, 0);
    for header in request.headers.iter() {
        if header.name.eq_ignore_ascii_case("host") {
            named = true;
        } else if header.name.eq_ignore_ascii_case("connection") {
            let mut options = header.value.split(|byte| *byte == b',').map(|option| option.trim_ascii());
            close |= options.any(|option| option.eq_ignore_ascii_case(b"close"));
        } else if header.name.eq_ignore_ascii_case("content-length") {
            let digits = std::str::from_utf8(header.value).ok().filter(|text| text.bytes().all(|b| b.is_ascii_digit()));
            match digits.and_then(|text| text.parse::<usize>().ok()) {
                Some(length) if length <= LONGEST => body = length,
                Some(_) => return Request::refused(Status::ContentTooLarge),
                None => return Request::refused(Status::BadRequest),
            }
        } else if header.name.eq_ignore_ascii_case("transfer-encoding") {
            return Request::refused(Status::NotImplemented);
        }
    }
    if !named {
        return Request::refused(Status::BadRequest);
    }
    let length = head_length + body;
    if bytes.len() < length {
        return None;
    }
    let method = request.method.unwrap_or_default();
    let route = match (method, route(request.path.unwrap_or_default())) {
        ("GET" | "HEAD", route) => route,
        (_, Route::Refused(status)) => Route::Refused(status),
        _ => Route::Refused(Status::MethodNotAllowed),
    };
    Some(Request { route, head: method == "HEAD", close, length })
}

fn route(target: &str) -> Route {
    // Strip scheme and authority from an absolute URI.
    let target = match target.split_once("://") {
        Some((scheme, rest)) if !scheme.contains('/') => rest.find('/').map_or("/", |slash| &rest[slash..]),
        _ => target,
    };
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let number = |name, low, high, fallback| clamped(parameter(query, name), low, high, fallback);
    match path {
        "/json" => Route::Json,
        "/plaintext" => Route::Plaintext,
        "/db" => Route::Db,
        "/queries" => Route::Queries(number("queries", 1, 500, 1) as usize),
        "/cached-queries" => Route::CachedQueries(number("count", 1, 500, 1) as usize),
        "/updates" => Route::Updates(number("queries", 1, 500, 1) as usize),
        "/fortunes" => Route::Fortunes,
        "/delay" => Route::Delay(number("ms", 0, 1000, 0) as u64),
        "/fan-out" => Route::FanOut(number("calls", 1, 100, 1) as usize),
        _ => Route::Refused(Status::NotFound),
    }
}

/// Returns the first value of a parameter. Integers need no percent-encoding, but encoded digits ("%35") are decoded.
fn parameter<'a>(query: &'a str, name: &str) -> Option<std::borrow::Cow<'a, str>> {
    let value = query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))?;
    Some(if value.contains('%') { decoded(value).into() } else { value.into() })
}

fn decoded(value: &str) -> String {
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value.as_bytes();
    while let [first, tail @ ..] = rest {
        let pair = tail.get(..2).and_then(|pair| std::str::from_utf8(pair).ok());
        match pair.filter(|_| *first == b'%').and_then(|pair| u8::from_str_radix(pair, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            None => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

impl Status {
    fn line(self) -> &'static [u8] {
        match self {
            Self::Ok => b"HTTP/1.1 200 OK\r\n",
            Self::BadRequest => b"HTTP/1.1 400 Bad Request\r\n",
            Self::NotFound => b"HTTP/1.1 404 Not Found\r\n",
            Self::MethodNotAllowed => b"HTTP/1.1 405 Method Not Allowed\r\nAllow: GET, HEAD\r\n",
            Self::ContentTooLarge => b"HTTP/1.1 413 Content Too Large\r\n",
            Self::HeaderFieldsTooLarge => b"HTTP/1.1 431 Request Header Fields Too Large\r\n",
            Self::NotImplemented => b"HTTP/1.1 501 Not Implemented\r\n",
            Self::BadGateway => b"HTTP/1.1 502 Bad Gateway\r\n",
            Self::Unavailable => b"HTTP/1.1 503 Service Unavailable\r\n",
        }
    }
}

pub const JSON: &[u8] = b"application/json";
pub const TEXT: &[u8] = b"text/plain";
pub const HTML: &[u8] = b"text/html; charset=utf-8";

/// A response with the common headers and a body.
pub struct Response<'a> {
    pub status: Status,
    pub content_type: &'a [u8],
    pub body: &'a [u8],
    pub head: bool,
    pub close: bool,
}

impl Response<'_> {
    pub fn write(&self, date: &[u8], output: &mut Vec<u8>) {
        output.extend_from_slice(self.status.line());
        output.extend_from_slice(b"Server: floor\r\nDate: ");
        output.extend_from_slice(date);
        output.extend_from_slice(b"\r\nContent-Type: ");
        output.extend_from_slice(self.content_type);
        output.extend_from_slice(b"\r\nContent-Length: ");
        output.extend_from_slice(itoa::Buffer::new().format(self.body.len()).as_bytes());
        output.extend_from_slice(if self.close { b"\r\nConnection: close\r\n\r\n" } else { b"\r\n\r\n" });
        if !self.head {
            output.extend_from_slice(self.body);
        }
    }
}
