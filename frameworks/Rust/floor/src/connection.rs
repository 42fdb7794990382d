//! A non-blocking socket with input and output buffers.

use std::io::{self, Read, Write};
use std::net::TcpStream;

pub struct Connection {
    pub stream: TcpStream,
    pub input: Vec<u8>,
    pub output: Vec<u8>,
    written: usize,
    /// Whether the peer has closed its end of the connection.
    pub ended: bool,
    /// The events for which the socket is registered with epoll.
    pub interest: Interest,
}

#[derive(Clone, Copy, PartialEq)]
pub struct Interest {
    pub read: bool,
    pub write: bool,
}

impl Connection {
    pub fn new(stream: TcpStream) -> Self {
        let interest = Interest { read: true, write: false };
        Self { stream, input: Vec::new(), output: Vec::new(), written: 0, ended: false, interest }
    }

    /// Appends available bytes to the input buffer, at most as many as fit into `scratch`. If more remain, epoll
    /// reports the socket again.
    pub fn read(&mut self, scratch: &mut [u8]) -> io::Result<()> {
        loop {
            match self.stream.read(scratch) {
                Ok(0) => self.ended = true,
                Ok(length) => self.input.extend_from_slice(&scratch[..length]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
            return Ok(());
        }
    }

    /// Writes as much pending output as the socket accepts.
    pub fn write(&mut self) -> io::Result<()> {
        while self.pending() {
            match self.stream.write(&self.output[self.written..]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(length) => self.written += length,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        self.output.clear();
        self.written = 0;
        Ok(())
    }

    /// Returns whether output is pending.
    pub fn pending(&self) -> bool {
        self.written < self.output.len()
    }
}
