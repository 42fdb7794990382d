//! Commands to the generator: lines on standard input, and signals.

use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags, poll};
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::clock::timespec;

/// Maximum length of a line on standard input, in bytes.
const LINE_LIMIT: usize = 4096;

/// A command from standard input or from a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    Go,         // start the load
    Stop,       // stop the load
    EndOfInput, // standard input was closed, so no command can follow
}

/// A listener for commands and for worker events.
#[derive(Debug)]
pub struct CommandListener {
    signals: UnixStream,
    wake: Arc<OwnedFd>,
    input: Vec<u8>,
    input_open: bool,
}

impl CommandListener {
    /// Start listening for SIGINT, SIGTERM, lines on standard input, and the eventfd `wake`.
    pub fn new(wake: Arc<OwnedFd>) -> Result<Self, String> {
        let (signals, sender) = UnixStream::pair().map_err(|error| error.to_string())?;
        signals.set_nonblocking(true).map_err(|error| error.to_string())?;
        for signal in [SIGINT, SIGTERM] {
            let end = sender.try_clone().map_err(|error| error.to_string())?;
            signal_hook::low_level::pipe::register(signal, end).map_err(|error| error.to_string())?;
        }
        Ok(Self { signals, wake, input: Vec::new(), input_open: true })
    }

    /// Wait for a command or a worker event; without a timeout, indefinitely. Return `None` if no command arrived.
    pub fn wait(&mut self, timeout_nanoseconds: Option<u64>) -> Result<Option<Command>, String> {
        if let Some(command) = self.next_line()? {
            return Ok(Some(command));
        }
        let stdin = std::io::stdin();
        let mut descriptors = vec![
            PollFd::from_borrowed_fd(self.signals.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(self.wake.as_fd(), PollFlags::IN),
        ];
        if self.input_open {
            descriptors.push(PollFd::from_borrowed_fd(stdin.as_fd(), PollFlags::IN));
        }
        let timeout = timeout_nanoseconds.map(timespec);
        if poll(&mut descriptors, timeout.as_ref()).is_err() {
            return Ok(None); // interrupted by a signal, which the next call reports
        }
        let readable: Vec<bool> = descriptors.iter().map(|entry| !entry.revents().is_empty()).collect();
        if readable[1] {
            let _ = rustix::io::read(&*self.wake, &mut [0; 8]);
        }
        if readable[0] {
            let _ = self.signals.read(&mut [0; 16]);
            return Ok(Some(Command::Stop));
        }
        if readable.get(2) == Some(&true) {
            let mut bytes = [0; LINE_LIMIT];
            match rustix::io::read(stdin.as_fd(), &mut bytes) {
                Ok(0) | Err(_) => {
                    self.input_open = false;
                    return Ok(Some(Command::EndOfInput));
                }
                Ok(count) => self.input.extend_from_slice(&bytes[..count]),
            }
            return self.next_line();
        }
        Ok(None)
    }

    fn next_line(&mut self) -> Result<Option<Command>, String> {
        let Some(end) = self.input.iter().position(|&byte| byte == b'\n') else {
            let too_long = self.input.len() > LINE_LIMIT;
            return if too_long {
                Err(format!("standard input: line longer than {LINE_LIMIT} bytes"))
            } else {
                Ok(None)
            };
        };
        let line: Vec<u8> = self.input.drain(..=end).collect();
        match line.trim_ascii() {
            b"go" => Ok(Some(Command::Go)),
            b"stop" => Ok(Some(Command::Stop)),
            other => Err(format!(
                "standard input: unknown command {:?}; expected go or stop",
                String::from_utf8_lossy(other)
            )),
        }
    }
}
