//! One connection: what was asked on it, what is being read, and what could not be written yet.

use std::collections::VecDeque;
use std::io::{ErrorKind, Write};
use std::net::{SocketAddr, TcpStream};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with, sockopt};

use crate::response::{Capture, Reader};

/// How far a connection is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Link {
    #[default]
    Down, // there is none
    Connecting, // the handshake is under way
    Up,         // established
}

/// In place of a key: nothing of the answer is kept.
pub const NOT_KEPT: u32 = u32::MAX;

/// A request that waits for its answer; times in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Slot {
    pub intended: u64, // when it should have been sent
    pub sent: u64,     // when it was handed to the kernel
    pub place: u32,    // of its request in the table; in a scenario, of the arrival that it belongs to
    pub key: u32,      // what was drawn for it (`sample`), or `NOT_KEPT`
}

/// A connection with everything that belongs to it; it is opened again when it is lost.
#[derive(Debug, Default)]
pub struct Connection {
    pub number: u32,                 // its number among all of the load
    pub stream: Option<TcpStream>,   // the socket, while there is one
    pub link: Link,                  // how far it is
    pub since: u64,                  // when connecting began
    pub listed: bool,                // whether it stands among the free ones
    pub outstanding: VecDeque<Slot>, // requests without an answer, oldest first
    pub reader: Reader,              // reads the answers
    pub unasked: bool,               // whether the response that is being read was not asked for
    pub capture: Capture,            // the response that is being read, if it is kept
    pub answers: u64,                // answers so far
    out: Vec<u8>,
    written: usize,
}

/// What became of bytes that were to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    All,    // the kernel has them all
    Some,   // it has some; the rest is kept and goes out when there is room
    Broken, // the connection is broken
}

impl Connection {
    /// Connection number `number`, not yet opened, for `depth` requests at once.
    pub fn new(number: u32, depth: usize) -> Self {
        Self { number, outstanding: VecDeque::with_capacity(depth), ..Self::default() }
    }

    /// Begin to connect without waiting.
    pub fn open(&mut self, address: &SocketAddr, now: u64) -> Result<&TcpStream, Errno> {
        let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let socket = socket_with(family, SocketType::STREAM, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC, None)?;
        sockopt::set_tcp_nodelay(&socket, true)?;
        match connect(&socket, address) {
            Ok(()) | Err(Errno::INPROGRESS) => {}
            Err(error) => return Err(error),
        }
        self.link = Link::Connecting;
        self.since = now;
        Ok(self.stream.insert(TcpStream::from(socket)))
    }

    /// Whether another request may be sent.
    #[inline]
    pub fn has_room(&self, depth: usize) -> bool {
        self.link == Link::Up && self.outstanding.len() < depth && self.out.is_empty()
    }

    /// Write at once what the kernel takes, keep the rest.
    #[inline]
    pub fn write(&mut self, bytes: &[u8]) -> Written {
        if !self.out.is_empty() {
            self.out.extend_from_slice(bytes);
            return Written::Some;
        }
        let Some(taken) = give(self.stream.as_mut(), bytes) else { return Written::Broken };
        if taken == bytes.len() {
            return Written::All;
        }
        self.out.extend_from_slice(&bytes[taken..]);
        self.written = 0;
        Written::Some
    }

    /// Write more of what was kept.
    pub fn flush(&mut self) -> Written {
        let Some(taken) = give(self.stream.as_mut(), &self.out[self.written..]) else { return Written::Broken };
        self.written += taken;
        if self.written < self.out.len() {
            return Written::Some;
        }
        self.out.clear();
        Written::All
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

/// How many bytes the kernel takes now; None where the connection is broken.
#[inline]
fn give(stream: Option<&mut TcpStream>, bytes: &[u8]) -> Option<usize> {
    match stream?.write(bytes) {
        Ok(taken) => Some(taken),
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Some(0),
        Err(_) => None,
    }
}
