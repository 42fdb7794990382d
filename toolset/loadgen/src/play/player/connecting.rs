//! Opening connections, writing what the kernel did not take at once, and giving connections up.

use std::cmp::Reverse;

use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;

use super::{Player, RETRY};
use crate::clock::now;
use crate::connection::{Link, Written};
use crate::play::tally::Fault;

impl Player {
    pub(super) fn next_retry(&self) -> u64 {
        self.down.peek().map_or(u64::MAX, |Reverse((time, _))| *time)
    }

    pub(super) fn open_some(&mut self, time: u64) {
        while self.next_retry() <= time {
            let Some(Reverse((_, i))) = self.down.pop() else { return };
            let connection = &mut self.connections[i as usize];
            let opened = connection.open(&self.given.plan.address, time).and_then(|()| match &connection.stream {
                Some(stream) => epoll::add(&self.epoll, stream, EventData::new_u64(u64::from(i)), EventFlags::OUT),
                None => Err(Errno::NOTCONN),
            });
            if opened.is_err() {
                self.refused(i, time);
            }
        }
    }

    /// A handshake has ended, one way or the other.
    pub(super) fn connected(&mut self, i: u32) {
        let connection = &mut self.connections[i as usize];
        let Some(stream) = &connection.stream else { return };
        let data = EventData::new_u64(u64::from(i));
        let ready = matches!(stream.take_error(), Ok(None))
            && epoll::modify(&self.epoll, stream, data, EventFlags::IN | EventFlags::RDHUP).is_ok();
        let time = now();
        if !ready {
            self.refused(i, time);
            return;
        }
        connection.link = Link::Up;
        self.tally.counters.opened += 1;
        self.tally.counters.reconnects += u64::from(connection.opened);
        connection.opened = true;
        self.list(i);
        self.dispatch(time);
    }

    fn refused(&mut self, i: u32, time: u64) {
        self.tally.counters.refused += 1;
        self.connections[i as usize].close();
        self.down.push(Reverse((time + RETRY, i)));
    }

    pub(super) fn wrote(&mut self, i: u32, (written, taken): (Written, usize)) {
        self.tally.counters.bytes_out += taken as u64;
        match written {
            Written::All => {}
            Written::Some => self.listen(i, EventFlags::IN | EventFlags::RDHUP | EventFlags::OUT),
            Written::Broken => self.broken(i),
        }
    }

    pub(super) fn write_more(&mut self, i: u32) {
        let (written, taken) = self.connections[i as usize].flush();
        self.tally.counters.bytes_out += taken as u64;
        match written {
            Written::All => self.listen(i, EventFlags::IN | EventFlags::RDHUP),
            Written::Some => {}
            Written::Broken => self.broken(i),
        }
    }

    fn listen(&mut self, i: u32, flags: EventFlags) {
        let Some(stream) = &self.connections[i as usize].stream else { return };
        if epoll::modify(&self.epoll, stream, EventData::new_u64(u64::from(i)), flags).is_err() {
            self.broken(i);
        }
    }

    fn broken(&mut self, i: u32) {
        self.tally.counters.closed_by_peer += 1;
        self.lose(i, now(), Fault::Write);
    }

    /// Give a connection up; the arrival that waits on it fails.
    pub(super) fn lose(&mut self, i: u32, time: u64, fault: Fault) {
        let connection = &mut self.connections[i as usize];
        let slot = connection.outstanding.pop_front();
        connection.close();
        self.down.push(Reverse((time, i)));
        if let Some(slot) = slot {
            self.fail(slot.request, fault);
        }
    }

    /// Give up connections that have not answered, and handshakes that have not ended, for too long.
    pub(super) fn scan(&mut self, time: u64) {
        let timeout = self.given.plan.timeout;
        for i in 0..self.connections.len() as u32 {
            let connection = &self.connections[i as usize];
            match connection.link {
                Link::Up => {
                    let oldest = connection.outstanding.front().map(|slot| slot.sent);
                    if oldest.is_some_and(|sent| sent + timeout <= time) {
                        self.tally.counters.hung += 1;
                        self.lose(i, time, Fault::Timeout);
                    }
                }
                Link::Connecting if connection.since + timeout <= time => self.refused(i, time),
                _ => {}
            }
        }
    }
}
