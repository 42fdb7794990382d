//! What comes from outside: lines on standard input, signals, and the bell of the workers.

use std::io::Read;
use std::os::fd::AsFd;

use rustix::event::{PollFd, PollFlags, poll};

use super::{LINE_LIMIT, Session, Word};
use crate::clock::timespec;

impl Session {
    /// Wait for a signal, a line or a worker; at most so many nanoseconds.
    pub(super) fn listen(&mut self, nanoseconds: Option<u64>) -> Result<Option<Word>, String> {
        if let Some(word) = self.next_line()? {
            return Ok(Some(word));
        }
        self.await_any(nanoseconds)
    }

    fn await_any(&mut self, nanoseconds: Option<u64>) -> Result<Option<Word>, String> {
        let stdin = std::io::stdin();
        let mut watched = vec![
            PollFd::from_borrowed_fd(self.signals.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(self.bell.as_fd(), PollFlags::IN),
        ];
        if self.listening {
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
                    self.listening = false;
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
            return if self.typed.len() > LINE_LIMIT {
                Err("a line on standard input without end".into())
            } else {
                Ok(None)
            };
        };
        let line: Vec<u8> = self.typed.drain(..=end).collect();
        match line.trim_ascii() {
            b"go" => Ok(Some(Word::Go)),
            b"stop" => Ok(Some(Word::Stop)),
            other => Err(format!("{:?} on standard input: go or stop is expected", String::from_utf8_lossy(other))),
        }
    }
}
