//! A connection with outstanding requests and buffers.

use std::collections::VecDeque;
use std::io::{ErrorKind, Write};
use std::net::{SocketAddr, TcpStream};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with, sockopt};

use crate::response::{CapturedResponse, Reader};

/// State of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConnectionState {
    #[default]
    Down,
    Connecting, // during the handshake
    Up,
}

/// Key of a request whose response is not captured.
pub const NOT_SAMPLED: u32 = u32::MAX;

/// A request without a response yet; times in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct PendingRequest {
    pub intended: u64, // time at which the request was due
    pub sent: u64,     // time of the write
    pub place: u32,    // index of the request in the table, or of the arrival in a scenario
    pub key: u32,      // sampling key (see `sampling`), or `NOT_SAMPLED`
}

/// A connection, which is reopened if it is lost.
#[derive(Debug, Default)]
pub struct Connection {
    pub number: u32, // unique across all workers
    pub stream: Option<TcpStream>,
    pub state: ConnectionState,
    pub since: u64,                            // start of the handshake, in nanoseconds
    pub in_free_list: bool,                    // whether the pool's list of free connections contains it
    pub outstanding: VecDeque<PendingRequest>, // oldest first
    pub reader: Reader,
    pub unsolicited: bool,         // whether the response being read belongs to no request
    pub capture: CapturedResponse, // the response being read, if it is captured
    pub responses: u64,            // number of responses so far
    out: Vec<u8>,
    written: usize,
}

/// Result of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteOutcome {
    Complete, // the kernel accepted all bytes
    Partial,  // the rest is buffered
    Broken,
}

impl Connection {
    /// Create a connection that is not open yet, for `depth` concurrent requests.
    pub fn new(number: u32, depth: usize) -> Self {
        Self { number, outstanding: VecDeque::with_capacity(depth), ..Self::default() }
    }

    /// Start connecting without waiting for the result.
    pub fn open(&mut self, address: &SocketAddr, now: u64) -> Result<&TcpStream, Errno> {
        let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let socket = socket_with(family, SocketType::STREAM, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC, None)?;
        sockopt::set_tcp_nodelay(&socket, true)?;
        match connect(&socket, address) {
            Ok(()) | Err(Errno::INPROGRESS) => {}
            Err(error) => return Err(error),
        }
        self.state = ConnectionState::Connecting;
        self.since = now;
        Ok(self.stream.insert(TcpStream::from(socket)))
    }

    /// Return whether a further request may be sent.
    #[inline]
    pub fn has_room(&self, depth: usize) -> bool {
        self.state == ConnectionState::Up && self.outstanding.len() < depth && self.out.is_empty()
    }

    /// Write as many bytes as the kernel accepts, and buffer the rest.
    #[inline]
    pub fn write(&mut self, bytes: &[u8]) -> WriteOutcome {
        if !self.out.is_empty() {
            self.out.extend_from_slice(bytes);
            return WriteOutcome::Partial;
        }
        let Some(taken) = write_some(self.stream.as_mut(), bytes) else { return WriteOutcome::Broken };
        if taken == bytes.len() {
            return WriteOutcome::Complete;
        }
        self.out.extend_from_slice(&bytes[taken..]);
        self.written = 0;
        WriteOutcome::Partial
    }

    /// Write more of the buffered bytes.
    pub fn flush(&mut self) -> WriteOutcome {
        let Some(taken) = write_some(self.stream.as_mut(), &self.out[self.written..]) else {
            return WriteOutcome::Broken;
        };
        self.written += taken;
        if self.written < self.out.len() {
            return WriteOutcome::Partial;
        }
        self.out.clear();
        WriteOutcome::Complete
    }

    /// Close the connection and discard the outstanding requests, which the caller has already counted.
    pub fn close(&mut self) {
        self.stream = None; // closing also removes the socket from epoll
        self.state = ConnectionState::Down;
        self.outstanding.clear();
        self.reader.reset();
        self.unsolicited = false;
        self.out.clear();
        self.written = 0;
    }
}

/// Return the number of bytes that the kernel accepted, or `None` if the connection is broken.
#[inline]
fn write_some(stream: Option<&mut TcpStream>, bytes: &[u8]) -> Option<usize> {
    match stream?.write(bytes) {
        Ok(taken) => Some(taken),
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Some(0),
        Err(_) => None,
    }
}
