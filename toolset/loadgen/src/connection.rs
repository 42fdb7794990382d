//! One connection: what was asked on it, what is being read, and what could not be written yet.

use std::collections::VecDeque;
use std::io::{ErrorKind, Write};
use std::net::{SocketAddr, TcpStream};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with, sockopt};

use crate::request::{Capture, Progress};
use crate::response::Reader;

/// How far a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// There is none.
    Down,
    /// The handshake is under way.
    Connecting,
    /// Established.
    Up,
}

/// A request that waits for its answer; times in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Slot {
    /// When it should have been sent.
    pub intended: u64,
    /// When it was handed to the kernel.
    pub sent: u64,
    /// Its place in the list of requests.
    pub request: u32,
    /// Whether its answer is written out.
    pub sampled: bool,
}

/// A connection with everything that belongs to it; it is opened again when it is lost.
#[derive(Debug)]
pub struct Connection {
    /// Its number among all of the load.
    pub number: u32,
    /// The socket, while there is one.
    pub stream: Option<TcpStream>,
    /// How far it is.
    pub link: Link,
    /// When connecting began.
    pub since: u64,
    /// Whether it had been established before.
    pub opened: bool,
    /// Whether it stands among the free ones.
    pub listed: bool,
    /// Requests without an answer, oldest first.
    pub outstanding: VecDeque<Slot>,
    /// Reads the answers.
    pub reader: Reader,
    /// How far the body that is being read has been compared.
    pub progress: Progress,
    /// Whether the response that is being read was not asked for.
    pub unasked: bool,
    /// The response that is being read, if it is drawn.
    pub capture: Capture,
    /// Answers so far.
    pub answers: u64,
    out: Vec<u8>,
    written: usize,
}

/// What became of bytes that were to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// The kernel has them all.
    All,
    /// It has some; the rest is kept and goes out when there is room.
    Some,
    /// The connection is broken.
    Broken,
}

impl Connection {
    /// Connection number `number`, not yet opened, for `depth` requests at once.
    pub fn new(number: u32, depth: usize) -> Self {
        Self {
            number,
            stream: None,
            link: Link::Down,
            since: 0,
            opened: false,
            listed: false,
            outstanding: VecDeque::with_capacity(depth),
            reader: Reader::default(),
            progress: Progress::default(),
            unasked: false,
            capture: Capture::default(),
            answers: 0,
            out: Vec::new(),
            written: 0,
        }
    }

    /// Begin to connect without waiting.
    pub fn open(&mut self, address: &SocketAddr, now: u64) -> Result<(), Errno> {
        let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let socket = socket_with(family, SocketType::STREAM, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC, None)?;
        sockopt::set_tcp_nodelay(&socket, true)?;
        match connect(&socket, address) {
            Ok(()) | Err(Errno::INPROGRESS) => {}
            Err(error) => return Err(error),
        }
        self.stream = Some(TcpStream::from(socket));
        self.link = Link::Connecting;
        self.since = now;
        Ok(())
    }

    /// Whether another request may be sent.
    #[inline]
    pub fn has_room(&self, depth: usize) -> bool {
        self.link == Link::Up && self.outstanding.len() < depth && self.out.is_empty()
    }

    /// Write at once what the kernel takes, keep the rest.
    #[inline]
    pub fn write(&mut self, bytes: &[u8]) -> (Written, usize) {
        if !self.out.is_empty() {
            self.out.extend_from_slice(bytes);
            return (Written::Some, 0);
        }
        let Some(stream) = &mut self.stream else { return (Written::Broken, 0) };
        let taken = match stream.write(bytes) {
            Ok(taken) => taken,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => 0,
            Err(_) => return (Written::Broken, 0),
        };
        if taken == bytes.len() {
            return (Written::All, taken);
        }
        self.out.extend_from_slice(&bytes[taken..]);
        self.written = 0;
        (Written::Some, taken)
    }

    /// Write more of what was kept.
    pub fn flush(&mut self) -> (Written, usize) {
        let Some(stream) = &mut self.stream else { return (Written::Broken, 0) };
        let taken = match stream.write(&self.out[self.written..]) {
            Ok(taken) => taken,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => 0,
            Err(_) => return (Written::Broken, 0),
        };
        self.written += taken;
        if self.written < self.out.len() {
            return (Written::Some, taken);
        }
        self.out.clear();
        (Written::All, taken)
    }

    /// Close it; what was outstanding has been accounted for.
    pub fn close(&mut self) {
        self.stream = None; // closing takes it out of epoll as well
        self.link = Link::Down;
        self.outstanding.clear();
        self.reader.reset();
        self.unasked = false;
        self.out.clear();
        self.written = 0;
    }
}
