//! Opening connections, and giving up those that do not answer.

use std::cmp::Reverse;

use rustix::event::epoll::{self, EventData, EventFlags};

use super::{HANDSHAKES, RETRY, WHEN_NEEDED, Worker};
use crate::clock::now;
use crate::connection::Link;
use crate::tally::Fault;

impl Worker {
    pub(super) fn next_retry(&self) -> u64 {
        match self.down.peek() {
            Some(Reverse((WHEN_NEEDED, _))) if self.handshakes < self.backlog.len().min(HANDSHAKES) => 0,
            Some(Reverse((time, _))) if self.handshakes < HANDSHAKES => *time,
            _ => u64::MAX,
        }
    }

    pub(super) fn open_some(&mut self, time: u64) {
        while self.next_retry() <= time {
            let Some(Reverse((_, i))) = self.down.pop() else { return };
            let connection = &mut self.connections[i as usize];
            let opened = connection
                .open(&self.plan.address, time)
                .and_then(|stream| epoll::add(&self.epoll, stream, EventData::new_u64(u64::from(i)), EventFlags::OUT));
            self.handshakes += 1;
            if opened.is_err() {
                self.refused(i, time);
            }
        }
    }

    /// A handshake has ended, one way or the other.
    pub(super) fn connected(&mut self, i: u32) {
        let time = now();
        let connection = &mut self.connections[i as usize];
        let Some(stream) = &connection.stream else { return };
        let data = EventData::new_u64(u64::from(i));
        let ready = matches!(stream.take_error(), Ok(None))
            && epoll::modify(&self.epoll, stream, data, EventFlags::IN | EventFlags::RDHUP).is_ok();
        if !ready {
            self.refused(i, time);
            return;
        }
        self.handshakes -= 1;
        connection.link = Link::Up;
        self.tally.connections_opened += 1;
        self.refill(i, time);
    }

    pub(super) fn refused(&mut self, i: u32, time: u64) {
        self.tally.errors.count(Fault::Connect);
        self.handshakes -= 1;
        self.connections[i as usize].close();
        self.down.push(Reverse((time + RETRY, i)));
    }
}
