//! Waiting for events, reading answers and judging them.

use std::cmp::Reverse;
use std::io::{ErrorKind, Read};

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, EventFlags};

use super::{Due, WAKE, WHEN_NEEDED, Worker};
use crate::clock::{now, timespec};
use crate::connection::{Link, NOT_KEPT, Slot};
use crate::course::Times;
use crate::response::Response;
use crate::sample::Sample;
use crate::tally::Fault;

impl Worker {
    /// Sleep until `until` or until something comes, then see to all of it.
    pub(super) fn wait(&mut self, time: u64, until: u64) {
        self.events.clear();
        let timeout = timespec(until.saturating_sub(time));
        let _ = epoll::wait(&self.epoll, spare_capacity(&mut self.events), Some(&timeout)); // interrupted: no events
        for at in 0..self.events.len() {
            let event = self.events[at];
            let name = { event.data }.u64();
            if name == WAKE {
                let _ = rustix::io::read(&self.given.wake, &mut [0; 8]);
                continue;
            }
            self.handle(name as u32, event.flags);
        }
    }

    #[inline]
    fn handle(&mut self, i: u32, flags: EventFlags) {
        match self.connections[i as usize].link {
            Link::Up => {
                if flags.contains(EventFlags::OUT) {
                    self.write_more(i);
                }
                if flags.intersects(EventFlags::IN | EventFlags::HUP | EventFlags::ERR | EventFlags::RDHUP) {
                    self.read(i);
                }
            }
            Link::Connecting => self.connected(i),
            Link::Down => {}
        }
    }

    #[inline]
    fn read(&mut self, i: u32) {
        let mut buffer = std::mem::take(&mut self.buffer);
        let connection = &mut self.connections[i as usize];
        let read = match &mut connection.stream {
            Some(stream) => stream.read(&mut buffer),
            None => Ok(0),
        };
        let time = now();
        match read {
            Ok(0) => self.ended(i, time),
            Ok(count) => {
                self.tally.bytes_in += count as u64;
                self.consume(i, &buffer[..count], time);
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(_) => self.ended(i, time),
        }
        self.buffer = buffer;
        if self.next_due <= time {
            self.send_due(time, self.given.times.stop());
        }
    }

    /// Read the responses in `data`, then send what may be sent.
    #[inline]
    fn consume(&mut self, i: u32, data: &[u8], time: u64) {
        if self.responses(i, data, time) {
            self.refill(i, time);
        } else {
            self.dispatch(time); // of an arrival that had its answer on a connection that is gone
        }
    }

    /// False when the connection is lost by them.
    #[inline]
    fn responses(&mut self, i: u32, data: &[u8], time: u64) -> bool {
        let mut at = 0;
        while at < data.len() {
            let connection = &mut self.connections[i as usize];
            if connection.reader.idle() {
                connection.unasked = connection.outstanding.is_empty();
                let slot = connection.outstanding.front().filter(|_| self.course.is_none());
                connection.reader.bodiless = slot.is_some_and(|slot| self.plan.requests.at(slot.place).bodiless);
            }
            let asked = if connection.unasked { None } else { connection.outstanding.front() };
            let kept = asked.is_some_and(|slot| slot.key != NOT_KEPT);
            let capture = if kept { Some(&mut connection.capture) } else { None };
            let Ok((used, response)) = connection.reader.advance(&data[at..], &mut self.cache, capture) else {
                if connection.unasked {
                    self.tally.unasked_bytes += (data.len() - at) as u64; // no request is there to blame
                }
                self.lose(i, time, Fault::Framing, Fault::Dropped);
                return false;
            };
            at += used;
            if connection.unasked {
                self.tally.unasked_bytes += used as u64;
                self.tally.unasked_responses += u64::from(response.is_some());
            } else if let Some(response) = response {
                self.answered(i, response, time);
            }
            if response.is_some_and(|response| response.close) {
                self.tally.connections_closed_by_peer += 1;
                self.lose(i, time, Fault::Closed, Fault::Closed);
                return false;
            }
        }
        true
    }

    /// The oldest request of a connection has its answer.
    #[inline]
    fn answered(&mut self, i: u32, response: Response, time: u64) {
        let connection = &mut self.connections[i as usize];
        let Some(slot) = connection.outstanding.pop_front() else { return };
        connection.answers += 1;
        self.outstanding -= 1;
        self.tally.received += 1;
        self.tally.statuses.count(response.status);
        let fault = if self.course.is_some() {
            self.play_on(i, slot, response, time)
        } else {
            if slot.key != NOT_KEPT {
                self.keep(i, slot, response, time);
            }
            if self.plan.requests.at(slot.place).expects(response.status) { None } else { Some(Fault::Status) }
        };
        let tally = &mut self.tally;
        if let Some(fault) = fault {
            tally.errors.count(fault);
            return;
        }
        tally.successes += 1;
        tally.service.record(time - slot.sent, 1);
        if !self.closed {
            tally.latency.record(time - slot.intended, 1);
        }
    }

    /// What an answer means for its arrival: its next step is due, or something was wrong.
    fn play_on(&mut self, i: u32, slot: Slot, response: Response, time: u64) -> Option<Fault> {
        let (course, capture) = (self.course.as_mut()?, &self.connections[i as usize].capture);
        let times = Times { due: slot.intended, sent: slot.sent, received: time };
        match course.answered(slot.place, response.status, capture, times) {
            Ok(next) => {
                if next {
                    self.tally.due += 1;
                    self.backlog.push_back(Due { intended: time, noticed: time, arrival: slot.place });
                }
                None
            }
            Err(fault) => Some(fault),
        }
    }

    fn keep(&mut self, i: u32, slot: Slot, response: Response, time: u64) {
        let connection = &self.connections[i as usize];
        let sample = Sample {
            key: slot.key,
            connection: connection.number,
            request: slot.place,
            sequence: connection.answers - 1,
            intended: slot.intended,
            sent: slot.sent,
            received: time,
            status: response.status,
            size: response.size,
            ..Sample::default()
        };
        self.samples.put(sample, &connection.capture);
    }

    /// The peer has closed or reset the connection.
    fn ended(&mut self, i: u32, time: u64) {
        let connection = &mut self.connections[i as usize];
        // In a closed loop no request ever waits for it.
        let idle = self.sending && !self.closed && connection.outstanding.is_empty();
        if let Some(response) = connection.reader.end() {
            if connection.unasked {
                self.tally.unasked_responses += 1;
            } else {
                self.answered(i, response, time);
            }
        }
        self.tally.connections_closed_by_peer += 1;
        self.lose(i, if idle { WHEN_NEEDED } else { time }, Fault::Closed, Fault::Closed);
        self.dispatch(time);
    }

    /// Give a connection up until `again`: its oldest request has one fault, those behind it the other.
    pub(super) fn lose(&mut self, i: u32, again: u64, first: Fault, behind: Fault) {
        let connection = &mut self.connections[i as usize];
        let lost = std::mem::take(&mut connection.outstanding);
        self.outstanding -= lost.len();
        if connection.link == Link::Connecting {
            self.handshakes -= 1;
        }
        connection.close();
        self.down.push(Reverse((again, i)));
        for (place, slot) in lost.iter().enumerate() {
            let fault = if place == 0 { first } else { behind };
            self.tally.errors.count(fault);
            if let Some(course) = &mut self.course {
                course.failed(slot.place, fault);
            }
        }
    }

    /// Give up connections that have not answered, and handshakes that have not ended, for too long.
    pub(super) fn scan(&mut self, time: u64) {
        for i in 0..self.connections.len() as u32 {
            let connection = &self.connections[i as usize];
            match connection.link {
                Link::Up => {
                    let oldest = connection.outstanding.front().map(|slot| slot.sent);
                    if oldest.is_some_and(|sent| sent + self.plan.given.timeout <= time) {
                        self.tally.connections_hung += 1;
                        self.lose(i, time, Fault::Timeout, Fault::Dropped);
                    }
                }
                Link::Connecting if connection.since + self.plan.given.timeout <= time => self.refused(i, time),
                _ => {}
            }
        }
    }
}
