//! Requests to the upstream of `/fan-out`, and the responses. The upstream returns an integer for each GET.

use std::io;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};

use rustix::io::Errno;
use socket2::{Domain, Socket, Type};

const MAX_HEADERS: usize = 32;

pub struct Target {
    pub address: SocketAddr,
    pub request: Vec<u8>,
}

pub struct Answer {
    pub value: i64,
    /// Whether the connection may be used again.
    pub keep: bool,
}

impl Target {
    /// Parses `http://host[:port]/path`, or fails with an error message.
    pub fn parse(url: &str) -> Result<Self, String> {
        let wrong = |what: &str| format!("UPSTREAM_URL is {url:?}: {what}");
        let rest = url.strip_prefix("http://").ok_or_else(|| wrong("it must begin with http://"))?;
        let (host, path) = rest.find('/').map_or((rest, "/"), |slash| rest.split_at(slash));
        let authority = if host.contains(':') { host.to_owned() } else { format!("{host}:80") };
        let address = authority.to_socket_addrs().map_err(|error| wrong(&error.to_string()))?.next();
        let address = address.ok_or_else(|| wrong("its host has no address"))?;
        Ok(Self { address, request: format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n").into_bytes() })
    }

    /// Starts opening a connection, without waiting until it is established.
    pub fn connect(&self) -> io::Result<TcpStream> {
        let socket = Socket::new(Domain::for_address(self.address), Type::STREAM, None)?;
        socket.set_nonblocking(true)?;
        socket.set_tcp_nodelay(true)?;
        match socket.connect(&self.address.into()) {
            Err(error) if error.raw_os_error() != Some(Errno::INPROGRESS.raw_os_error()) => Err(error),
            _ => Ok(socket.into()),
        }
    }
}

/// Parses a response, which must have status 200, a Content-Length, and an integer as the body. Returns `None` if the
/// response is incomplete.
pub fn answer(bytes: &[u8]) -> Option<Result<Answer, String>> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut response = httparse::Response::new(&mut headers);
    let head = match response.parse(bytes) {
        Ok(httparse::Status::Complete(head)) => head,
        Ok(httparse::Status::Partial) => return None,
        Err(error) => return Some(Err(error.to_string())),
    };
    let header = |name: &str| {
        let found = response.headers.iter().find(|header| header.name.eq_ignore_ascii_case(name))?;
        std::str::from_utf8(found.value).ok()
    };
    let Some(length) = header("content-length").and_then(|text| text.parse::<usize>().ok()) else {
        return Some(Err("no Content-Length".into()));
    };
    let body = bytes.get(head..)?.get(..length)?;
    if response.code != Some(200) {
        return Some(Err(format!("status {}", response.code.unwrap_or(0))));
    }
    let keep = !header("connection").is_some_and(|options| options.eq_ignore_ascii_case("close"));
    let value = std::str::from_utf8(body).ok().and_then(|text| text.trim().parse().ok());
    Some(value.map(|value| Answer { value, keep }).ok_or_else(|| "the body is not an integer".into()))
}
