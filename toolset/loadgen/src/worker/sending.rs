//! Sending what is due, and what a closed loop has under way.

use rustix::event::epoll::{self, EventData, EventFlags};

use super::{Due, Worker};
use crate::arrivals::Arrivals;
use crate::clock::now;
use crate::connection::{Slot, Written};
use crate::tally::Fault;

impl Worker {
    /// Send, or put into the backlog, everything that is due by `time` and before `stop`.
    #[inline]
    pub(super) fn send_due(&mut self, mut time: u64, stop: u64) {
        while self.next_due <= time && self.next_due < stop {
            let due = Due { intended: self.next_due, noticed: time };
            self.next_due = self.arrivals.as_mut().map_or(u64::MAX, Arrivals::draw);
            match if self.backlog.is_empty() { self.free_connection() } else { None } {
                Some(i) => {
                    time = time.max(now());
                    self.send(i, due, 0, time);
                    self.list(i);
                }
                None => self.backlog.push_back(due),
            }
        }
        self.tally.backlog_peak = self.tally.backlog_peak.max(self.backlog.len() as u64);
    }

    pub(super) fn free_connection(&mut self) -> Option<u32> {
        while let Some(i) = self.free.pop_front() {
            let connection = &mut self.connections[i as usize];
            connection.listed = false;
            if connection.has_room(self.plan.depth) {
                return Some(i);
            }
        }
        None
    }

    /// Among the free ones, if it has room.
    #[inline]
    pub(super) fn list(&mut self, i: u32) {
        let connection = &mut self.connections[i as usize];
        if !connection.listed && connection.has_room(self.plan.depth) {
            connection.listed = true;
            self.free.push_back(i);
        }
    }

    /// A connection has room since `time`: use it.
    #[inline]
    pub(super) fn refill(&mut self, i: u32, time: u64) {
        if self.plan.rate.is_some() {
            while !self.backlog.is_empty() && self.connections[i as usize].has_room(self.plan.depth) {
                if let Some(due) = self.backlog.pop_front() {
                    self.send(i, due, time, now());
                }
            }
            self.list(i);
        } else if self.sending
            && self.connections[i as usize].outstanding.is_empty()
            && self.connections[i as usize].has_room(self.plan.depth)
        {
            self.send_batch(i, time);
        }
    }

    /// Send one request of an open loop on a connection that is free since `free`.
    #[inline]
    pub(super) fn send(&mut self, i: u32, due: Due, free: u64, time: u64) {
        // Waiting for a connection is the server's doing; to notice late and to send late is the generator's.
        let lag = (due.noticed - due.intended) + time.saturating_sub(free.max(due.noticed));
        self.tally.lag.record(lag, 1);
        let request = self.next_request();
        self.ask(i, due.intended, time, request);
        let bytes = &self.plan.requests[request as usize].bytes;
        let wrote = self.connections[i as usize].write(bytes);
        self.wrote(i, wrote);
    }

    /// Send as many requests as a closed loop has under way on a connection.
    #[inline]
    pub(super) fn send_batch(&mut self, i: u32, time: u64) {
        let mut batch = std::mem::take(&mut self.batch);
        let rebuild = self.plan.requests.len() > 1;
        if rebuild {
            batch.clear();
        }
        for _ in 0..self.plan.depth {
            let request = self.next_request();
            self.ask(i, time, time, request);
            if rebuild {
                batch.extend_from_slice(&self.plan.requests[request as usize].bytes);
            }
        }
        let wrote = self.connections[i as usize].write(&batch);
        self.wrote(i, wrote);
        self.batch = batch;
    }

    #[inline]
    pub(super) fn next_request(&mut self) -> u32 {
        let count = self.plan.requests.len();
        if count == 1 {
            return 0;
        }
        if self.plan.random_order {
            return self.random.below(count) as u32;
        }
        let this = self.rotation % count;
        self.rotation = this + self.plan.threads; // each worker takes its turns in one rotation
        this as u32
    }

    #[inline]
    pub(super) fn ask(&mut self, i: u32, intended: u64, sent: u64, request: u32) {
        let share = self.plan.sample_rate;
        let sampled = share > 0.0 && self.random.unit() < share;
        self.connections[i as usize].outstanding.push_back(Slot { intended, sent, request, sampled });
        self.outstanding += 1;
        self.tally.counters.sent += 1;
    }

    #[inline]
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
            Written::All => {
                self.listen(i, EventFlags::IN | EventFlags::RDHUP);
                self.refill(i, now());
            }
            Written::Some => {}
            Written::Broken => self.broken(i),
        }
    }

    pub(super) fn listen(&mut self, i: u32, flags: EventFlags) {
        if let Some(stream) = &self.connections[i as usize].stream {
            if epoll::modify(&self.epoll, stream, EventData::new_u64(u64::from(i)), flags).is_err() {
                self.broken(i);
            }
        }
    }

    pub(super) fn broken(&mut self, i: u32) {
        self.tally.counters.connections_closed_by_peer += 1;
        self.lose(i, now(), Fault::Write, Fault::Closed);
    }
}
