//! A connection to the server, with outstanding requests and a write buffer.

use std::collections::VecDeque;

use rustix::io::Errno;

use crate::http2::Http2Session;
use crate::response::{CapturedResponse, Reader};
use crate::transport::{Peer, Transport, is_transient};
use crate::websocket::WebSocketSession;

/// Life-cycle state of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConnectionState {
    #[default]
    Down,
    Connecting, // during the TCP or TLS handshake
    Opening,    // during the HTTP/2 or WebSocket handshake
    Up,
}

/// Protocol state of a connection.
#[derive(Debug, Default)]
pub enum Session {
    #[default]
    Http1, // the state is in `Connection::reader`
    Http2(Box<Http2Session>),
    WebSocket(Box<WebSocketSession>),
}

/// Sampling key of a request whose response is not captured.
pub const NOT_SAMPLED: u32 = u32::MAX;

/// A request that waits for a response. Times are in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct PendingRequest {
    pub intended: u64, // time at which it was due
    pub sent: u64,     // time at which it was written
    pub place: u32,    // index into the request table; in a scenario, index of the arrival
    pub key: u32,      // sampling key (see `sampling`), or `NOT_SAMPLED`
}

/// A connection to the server. It outlives a lost socket, so that the worker can reopen it.
#[derive(Debug, Default)]
pub struct Connection {
    pub number: u32, // unique across all workers
    pub stream: Option<Transport>,
    pub state: ConnectionState,
    pub since: u64,                            // start time of the latest handshake, in nanoseconds
    pub in_free_list: bool,                    // whether the connection is in the pool's free list
    pub outstanding: VecDeque<PendingRequest>, // oldest first
    pub session: Session,
    pub reader: Reader,
    pub unsolicited: bool,         // whether the response being read belongs to no request
    pub capture: CapturedResponse, // the response being read, if it is captured
    pub responses: u64,            // total number of responses
    pub served: usize,             // number of responses since the connection was opened
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
    /// Create a connection without a socket. `depth` is the number of concurrent requests to allocate memory for, and
    /// `body_limit` is the maximum size of captured bodies.
    pub fn new(number: u32, depth: usize, body_limit: usize) -> Self {
        let capture = CapturedResponse::new(body_limit);
        Self { number, outstanding: VecDeque::with_capacity(depth), capture, ..Self::default() }
    }

    /// Start connecting without waiting for the result.
    pub fn open(&mut self, peer: &Peer, now: u64) -> Result<&Transport, Errno> {
        let stream = Transport::open(peer)?;
        self.state = ConnectionState::Connecting;
        self.since = now;
        Ok(self.stream.insert(stream))
    }

    /// Return whether a request can be sent now: the connection is up, its write buffer is empty, and fewer than `depth`
    /// requests are outstanding. HTTP/2 uses the capacity of the session instead of `depth`.
    #[inline]
    pub fn has_room(&self, depth: usize) -> bool {
        let capacity = match &self.session {
            Session::Http1 | Session::WebSocket(_) => depth,
            Session::Http2(session) => session.capacity(),
        };
        self.state == ConnectionState::Up && self.outstanding.len() < capacity && self.out.is_empty()
    }

    /// Return whether all bytes have been written.
    pub fn all_written(&self) -> bool {
        self.out.is_empty() && !self.wants_write()
    }

    /// Write as many bytes as the kernel accepts, and buffer the rest.
    #[inline]
    pub fn write(&mut self, bytes: &[u8]) -> WriteOutcome {
        if !self.out.is_empty() {
            self.out.extend_from_slice(bytes);
            return WriteOutcome::Partial;
        }
        let Some(taken) = write_some(self.stream.as_mut(), bytes) else { return WriteOutcome::Broken };
        if taken == bytes.len() && !self.wants_write() {
            return WriteOutcome::Complete;
        }
        self.out.extend_from_slice(&bytes[taken..]);
        self.written = 0;
        WriteOutcome::Partial
    }

    fn wants_write(&self) -> bool {
        self.stream.as_ref().is_some_and(Transport::wants_write)
    }

    /// Write as many of the buffered bytes as the kernel accepts.
    pub fn flush(&mut self) -> WriteOutcome {
        let Some(taken) = write_some(self.stream.as_mut(), &self.out[self.written..]) else {
            return WriteOutcome::Broken;
        };
        self.written += taken;
        if self.written < self.out.len() || self.wants_write() {
            return WriteOutcome::Partial;
        }
        self.out.clear();
        WriteOutcome::Complete
    }

    /// Close the connection and discard the outstanding requests, which the caller has already counted.
    pub fn close(&mut self) {
        self.stream = None; // closing also removes the socket from epoll
        self.state = ConnectionState::Down;
        self.served = 0;
        self.outstanding.clear();
        self.session = Session::Http1;
        self.reader.reset();
        self.unsolicited = false;
        self.out.clear();
        self.written = 0;
    }
}

/// Write as many bytes as the kernel accepts. Return their number, or `None` if the connection is broken.
#[inline]
fn write_some(stream: Option<&mut Transport>, bytes: &[u8]) -> Option<usize> {
    match stream?.write(bytes) {
        Ok(taken) => Some(taken),
        Err(error) if is_transient(&error) => Some(0),
        Err(_) => None,
    }
}
