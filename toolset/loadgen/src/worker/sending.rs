//! Sending what is due, and what a closed loop has under way.

use rustix::event::epoll::{self, EventData, EventFlags};

use super::{Due, Worker};
use crate::clock::now;
use crate::connection::{NOT_KEPT, Slot, Written};
use crate::course::Course;
use crate::tally::Fault;

impl Worker {
    /// Draw when the next request is due; a closed loop has none.
    pub(super) fn draw(&mut self) {
        self.next_due = match &mut self.arrivals {
            Some(arrivals) => arrivals.draw(),
            None => self.course.as_ref().map_or(u64::MAX, Course::next),
        };
    }

    /// Send, or put into the backlog, everything that is due by `time` and before `stop`.
    #[inline]
    pub(super) fn send_due(&mut self, time: u64, stop: u64) {
        while self.next_due <= time && self.next_due < stop {
            let arrival = self.course.as_mut().map_or(0, Course::arrive);
            self.backlog.push_back(Due { intended: self.next_due, noticed: time, arrival });
            self.tally.due += 1;
            self.draw();
            self.dispatch(0);
        }
        self.tally.backlog_peak = self.tally.backlog_peak.max(self.backlog.len() as u64);
    }

    /// Send what is due as long as there are connections, the last of which is free since `free`.
    #[inline]
    pub(super) fn dispatch(&mut self, free: u64) {
        while !self.backlog.is_empty() {
            let Some(i) = self.free_connection() else { return };
            if let Some(due) = self.backlog.pop_front() {
                self.send(i, due, free);
            }
        }
    }

    fn free_connection(&mut self) -> Option<u32> {
        while let Some(i) = self.free.pop_front() {
            let connection = &mut self.connections[i as usize];
            connection.listed = false;
            if connection.has_room(1) {
                return Some(i);
            }
        }
        None
    }

    /// A connection has room since `time`: use it.
    #[inline]
    pub(super) fn refill(&mut self, i: u32, time: u64) {
        let connection = &mut self.connections[i as usize];
        if !self.closed {
            if !connection.listed && connection.has_room(1) {
                connection.listed = true;
                self.free.push_back(i);
            }
            self.dispatch(time);
        } else if self.sending
            && time < self.given.times.stop()
            && connection.outstanding.is_empty()
            && connection.has_room(self.depth)
        {
            self.send_batch(i, time);
        }
    }

    /// Send one request that is due on a connection that is free since `free`.
    fn send(&mut self, i: u32, due: Due, free: u64) {
        let (bytes, place, key) = if let Some(course) = &mut self.course {
            let (bytes, looked_into) = course.ask(due.arrival, &self.plan.headers);
            (bytes, due.arrival, if looked_into { 0 } else { NOT_KEPT })
        } else {
            let place = self.plan.requests.draw(&mut self.random);
            let key = self.samples.key(|| self.random.bits());
            (self.plan.requests.at(place).bytes.as_slice(), place, key)
        };
        let time = now();
        // Waiting for a connection is the server's doing; to notice late and to send late is the generator's.
        let lag = (due.noticed - due.intended) + time.saturating_sub(free.max(due.noticed));
        self.tally.lag.record(lag, 1);
        let connection = &mut self.connections[i as usize];
        connection.outstanding.push_back(Slot { intended: due.intended, sent: time, place, key });
        self.outstanding += 1;
        self.tally.sent += 1;
        let wrote = connection.write(bytes);
        self.wrote(i, wrote);
    }

    /// Send as many requests as a closed loop has under way on a connection.
    #[inline]
    fn send_batch(&mut self, i: u32, time: u64) {
        let connection = &mut self.connections[i as usize];
        let requests = &self.plan.requests;
        if requests.drawn() {
            self.batch.clear();
        }
        for _ in 0..self.depth {
            let mut place = 0;
            if requests.drawn() {
                place = requests.draw(&mut self.random);
                self.batch.extend_from_slice(&requests.at(place).bytes);
            }
            let key = self.samples.key(|| self.random.bits());
            connection.outstanding.push_back(Slot { intended: time, sent: time, place, key });
        }
        self.outstanding += self.depth;
        self.tally.sent += self.depth as u64;
        let wrote = connection.write(&self.batch);
        self.wrote(i, wrote);
    }

    #[inline]
    fn wrote(&mut self, i: u32, written: Written) {
        match written {
            Written::All => {}
            Written::Some => self.listen(i, EventFlags::IN | EventFlags::RDHUP | EventFlags::OUT),
            Written::Broken => self.broken(i),
        }
    }

    pub(super) fn write_more(&mut self, i: u32) {
        match self.connections[i as usize].flush() {
            Written::All => {
                self.listen(i, EventFlags::IN | EventFlags::RDHUP);
                self.refill(i, now());
            }
            Written::Some => {}
            Written::Broken => self.broken(i),
        }
    }

    fn listen(&mut self, i: u32, flags: EventFlags) {
        if let Some(stream) = &self.connections[i as usize].stream {
            if epoll::modify(&self.epoll, stream, EventData::new_u64(u64::from(i)), flags).is_err() {
                self.broken(i);
            }
        }
    }

    fn broken(&mut self, i: u32) {
        self.tally.connections_closed_by_peer += 1;
        self.lose(i, now(), Fault::Write, Fault::Closed);
    }
}
