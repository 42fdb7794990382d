//! What comes from outside: lines on standard input, signals, and the bell of the workers.

use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags, poll};
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::clock::timespec;

/// The longest line that is read from standard input, in bytes.
const LINE_LIMIT: usize = 4096;

/// What the person or program outside said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    Go,   // begin the load
    Stop, // end it
    End,  // nothing more will be said on standard input
}

/// Hears everything that a load may be told while it is prepared and under way.
#[derive(Debug)]
pub struct Listener {
    signals: UnixStream,
    bell: Arc<OwnedFd>,
    typed: Vec<u8>,
    open: bool, // standard input
}

impl Listener {
    /// Hear SIGINT and SIGTERM from now on, standard input, and the workers' bell.
    pub fn new(bell: Arc<OwnedFd>) -> Result<Self, String> {
        let (signals, heard) = UnixStream::pair().map_err(|error| error.to_string())?;
        signals.set_nonblocking(true).map_err(|error| error.to_string())?;
        for signal in [SIGINT, SIGTERM] {
            let end = heard.try_clone().map_err(|error| error.to_string())?;
            signal_hook::low_level::pipe::register(signal, end).map_err(|error| error.to_string())?;
        }
        Ok(Self { signals, bell, typed: Vec::new(), open: true })
    }

    /// Wait for a signal, a line or a worker; at most so many nanoseconds.
    pub fn listen(&mut self, nanoseconds: Option<u64>) -> Result<Option<Word>, String> {
        if let Some(word) = self.next_line()? {
            return Ok(Some(word));
        }
        let stdin = std::io::stdin();
        let mut watched = vec![
            PollFd::from_borrowed_fd(self.signals.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(self.bell.as_fd(), PollFlags::IN),
        ];
        if self.open {
            watched.push(PollFd::from_borrowed_fd(stdin.as_fd(), PollFlags::IN));
        }
        let timeout = nanoseconds.map(timespec);
        if poll(&mut watched, timeout.as_ref()).is_err() {
            return Ok(None); // interrupted by the signal that is read next time
        }
        let came: Vec<bool> = watched.iter().map(|entry| !entry.revents().is_empty()).collect();
        if came[1] {
            let _ = rustix::io::read(&*self.bell, &mut [0; 8]);
        }
        if came[0] {
            let _ = self.signals.read(&mut [0; 16]);
            return Ok(Some(Word::Stop));
        }
        if came.get(2) == Some(&true) {
            let mut bytes = [0; LINE_LIMIT];
            match rustix::io::read(stdin.as_fd(), &mut bytes) {
                Ok(0) | Err(_) => {
                    self.open = false;
                    return Ok(Some(Word::End));
                }
                Ok(count) => self.typed.extend_from_slice(&bytes[..count]),
            }
            return self.next_line();
        }
        Ok(None)
    }

    fn next_line(&mut self) -> Result<Option<Word>, String> {
        let Some(end) = self.typed.iter().position(|&byte| byte == b'\n') else {
            let endless = self.typed.len() > LINE_LIMIT;
            return if endless { Err("a line on standard input without end".into()) } else { Ok(None) };
        };
        let line: Vec<u8> = self.typed.drain(..=end).collect();
        match line.trim_ascii() {
            b"go" => Ok(Some(Word::Go)),
            b"stop" => Ok(Some(Word::Stop)),
            other => Err(format!("{:?} on standard input: go or stop is expected", String::from_utf8_lossy(other))),
        }
    }
}
