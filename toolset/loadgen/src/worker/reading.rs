//! Waiting for events, reading answers and judging them.

use std::cmp::Reverse;
use std::io::{ErrorKind, Read};

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, EventFlags};

use super::{WAKE, Worker};
use crate::clock::{now, timespec};
use crate::connection::Link;
use crate::request::{Judge, Judgement};
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
                let _ = rustix::io::read(&self.wake, &mut [0; 8]);
                continue;
            }
            self.handle(name as u32, event.flags);
        }
    }

    #[inline]
    pub(super) fn handle(&mut self, i: u32, flags: EventFlags) {
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
    pub(super) fn read(&mut self, i: u32) {
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
                self.tally.counters.bytes_in += count as u64;
                self.consume(i, &buffer[..count], time);
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(_) => self.ended(i, time),
        }
        self.buffer = buffer;
        if self.next_due <= time {
            self.send_due(time, self.times.stop());
        }
    }

    /// Read the responses in `data`, then send what may be sent.
    #[inline]
    pub(super) fn consume(&mut self, i: u32, data: &[u8], time: u64) {
        let mut at = 0;
        while at < data.len() {
            let connection = &mut self.connections[i as usize];
            if connection.reader.idle() {
                connection.unasked = connection.outstanding.is_empty();
            }
            let slot = if connection.unasked { None } else { connection.outstanding.front() };
            let request = slot.map(|slot| &self.plan.requests[slot.request as usize]);
            let capture = slot.filter(|slot| slot.sampled).map(|_| &mut connection.capture);
            let mut judge = Judge::new(request.map(|request| &request.rule), connection.progress, capture);
            let headless = request.is_some_and(|request| request.head);
            let step = connection.reader.advance(&data[at..], headless, &mut self.cache, &mut judge);
            connection.progress = judge.progress();
            let Ok((used, response)) = step else {
                if connection.unasked {
                    self.tally.counters.unasked_bytes += (data.len() - at) as u64; // no request is there to blame
                }
                self.lose(i, time, Fault::Framing, Fault::Dropped);
                return;
            };
            at += used;
            if connection.unasked {
                self.tally.counters.unasked_bytes += used as u64;
                self.tally.counters.unasked_responses += u64::from(response.is_some());
            } else if let Some(response) = response {
                self.answered(i, response, time);
            }
            if response.is_some_and(|response| response.close) {
                self.tally.counters.connections_closed_by_peer += 1;
                self.lose(i, time, Fault::Closed, Fault::Closed);
                return;
            }
        }
        self.refill(i, time);
    }

    /// The oldest request of a connection has its answer.
    #[inline]
    pub(super) fn answered(&mut self, i: u32, response: Response, time: u64) {
        let connection = &mut self.connections[i as usize];
        let Some(slot) = connection.outstanding.pop_front() else { return };
        let request = &self.plan.requests[slot.request as usize];
        let sequence = connection.answers;
        connection.answers += 1;
        self.outstanding -= 1;
        let tally = &mut *self.tally;
        tally.counters.received += 1;
        tally.counters.response_bytes += response.size;
        tally.status(response.status);
        if (200..300).contains(&response.status) {
            match connection.progress.judge(&request.rule, response.body) {
                Judgement::Right => {
                    tally.counters.successes += 1;
                    tally.service.record(time - slot.sent, 1);
                    if self.arrivals.is_some() {
                        tally.latency.record(time - slot.intended, 1);
                    }
                }
                Judgement::WrongLength => tally.fault(Fault::Length, 1),
                Judgement::WrongBytes => tally.fault(Fault::Body, 1),
            }
        } else {
            tally.fault(Fault::Status, 1);
        }
        if slot.sampled {
            let taken = self.samples.put(&Sample {
                connection: connection.number,
                sequence,
                target: &request.target,
                intended: slot.intended,
                sent: slot.sent,
                received: time,
                response,
                capture: &connection.capture,
            });
            tally.counters.sampled += u64::from(taken);
            tally.counters.sampled_over_limit += u64::from(!taken);
        }
    }

    /// The peer has closed or reset the connection.
    pub(super) fn ended(&mut self, i: u32, time: u64) {
        let connection = &mut self.connections[i as usize];
        if let Some(response) = connection.reader.end() {
            if connection.unasked {
                self.tally.counters.unasked_responses += 1;
            } else {
                self.answered(i, response, time);
            }
        }
        self.tally.counters.connections_closed_by_peer += 1;
        self.lose(i, time, Fault::Closed, Fault::Closed);
    }

    /// Give a connection up: its oldest request has one fault, those behind it the other.
    pub(super) fn lose(&mut self, i: u32, time: u64, first: Fault, behind: Fault) {
        let connection = &mut self.connections[i as usize];
        let lost = connection.outstanding.len();
        self.outstanding -= lost;
        if connection.link == Link::Connecting {
            self.handshakes -= 1;
        }
        if lost > 0 {
            self.tally.fault(first, 1);
            self.tally.fault(behind, lost as u64 - 1);
        }
        connection.close();
        self.down.push(Reverse((time, i)));
    }

    /// Give up connections that have not answered, and handshakes that have not ended, for too long.
    pub(super) fn scan(&mut self, time: u64) {
        for i in 0..self.connections.len() as u32 {
            let connection = &self.connections[i as usize];
            match connection.link {
                Link::Up => {
                    let oldest = connection.outstanding.front().map(|slot| slot.sent);
                    if oldest.is_some_and(|sent| sent + self.plan.timeout <= time) {
                        self.tally.counters.connections_hung += 1;
                        self.lose(i, time, Fault::Timeout, Fault::Dropped);
                    }
                }
                Link::Connecting if connection.since + self.plan.timeout <= time => self.refused(i, time),
                _ => {}
            }
        }
    }
}
