//! Reading answers, and what they mean for their arrivals.

use std::io::{ErrorKind, Read};

use super::Player;
use crate::clock::now;
use crate::play::arrival::{Arrival, Outcome};
use crate::play::tally::Fault;
use crate::request::{Judge, Progress};
use crate::response::Response;

impl Player {
    pub(super) fn read(&mut self, i: u32) {
        let mut buffer = std::mem::take(&mut self.buffer);
        let read = match &mut self.connections[i as usize].stream {
            Some(stream) => stream.read(&mut buffer),
            None => Ok(0),
        };
        let time = now();
        match read {
            Ok(0) => self.closed(i, time),
            Ok(count) => {
                self.tally.counters.bytes_in += count as u64;
                self.consume(i, &buffer[..count], time);
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(_) => self.closed(i, time),
        }
        self.buffer = buffer;
        if self.next_arrival() <= time {
            self.arrive(time, self.given.times.stop());
        }
    }

    /// Read the answers in `data`, then send what may be sent.
    fn consume(&mut self, i: u32, data: &[u8], time: u64) {
        let mut at = 0;
        while at < data.len() {
            let connection = &mut self.connections[i as usize];
            if connection.reader.idle() {
                connection.unasked = connection.outstanding.is_empty();
            }
            let asked = !connection.unasked && connection.outstanding.front().is_some_and(|slot| slot.sampled);
            let capture = asked.then_some(&mut connection.capture);
            let mut judge = Judge::new(None, Progress::default(), capture);
            let Ok((used, response)) = connection.reader.advance(&data[at..], false, &mut self.cache, &mut judge)
            else {
                self.lose(i, time, Fault::Read);
                self.dispatch(time);
                return;
            };
            at += used;
            let Some(response) = response else { continue };
            if connection.unasked {
                self.tally.counters.unasked += 1;
            } else {
                self.answered(i, response, time);
            }
            if response.close {
                self.closed(i, time);
                return;
            }
        }
        self.list(i);
        self.dispatch(time);
    }

    /// The request of a connection has its answer.
    fn answered(&mut self, i: u32, response: Response, time: u64) {
        let connection = &mut self.connections[i as usize];
        let Some(slot) = connection.outstanding.pop_front() else { return };
        let Some(arrival) = &mut self.under_way[slot.request as usize] else { return };
        let steps = &self.given.scenario.use_cases[arrival.use_case].steps;
        let step = &steps[arrival.step];
        let body = &connection.capture.body;
        let tally = &mut self.tally.operations[step.operation];
        *tally.statuses.entry(response.status).or_default() += 1;
        if self.given.keep {
            arrival.keep(response.status, body);
        }
        let right = response.status == step.status;
        if !right || !step.capture(body, &mut arrival.values) {
            tally.fault(if right { Fault::Read } else { Fault::Status });
            self.tally.courses[arrival.use_case].failed += 1;
            self.take_away(slot.request);
            return;
        }
        let in_time = u64::from(time < self.given.times.stop());
        tally.answered += 1;
        tally.response.record(time - slot.intended, 1);
        tally.service.record(time - slot.sent, 1);
        self.tally.counters.answered_in_time += in_time;
        arrival.go_on(time);
        if let Some(next) = steps.get(arrival.step) {
            self.tally.operations[next.operation].due += 1;
            self.tally.counters.due_in_time += in_time;
            self.waiting.push_back(slot.request);
        } else {
            let course = &mut self.tally.courses[arrival.use_case];
            course.done += 1;
            course.response.record(time - arrival.came, 1);
            self.tally.counters.done_in_time += in_time;
            self.take_away(slot.request);
        }
    }

    /// The peer has closed or reset the connection, or said that it would.
    fn closed(&mut self, i: u32, time: u64) {
        let connection = &mut self.connections[i as usize];
        if let Some(response) = connection.reader.end() {
            if connection.unasked {
                self.tally.counters.unasked += 1;
            } else {
                self.answered(i, response, time);
            }
        }
        self.tally.counters.closed_by_peer += 1;
        self.lose(i, time, Fault::Read);
        self.dispatch(time);
    }

    /// Its request has no answer: the arrival goes no further.
    pub(super) fn fail(&mut self, id: u32, fault: Fault) {
        let Some(arrival) = &mut self.under_way[id as usize] else { return };
        let step = &self.given.scenario.use_cases[arrival.use_case].steps[arrival.step];
        self.tally.operations[step.operation].fault(fault);
        self.tally.courses[arrival.use_case].failed += 1;
        arrival.outcomes.push(Outcome::Fault(fault));
        self.take_away(id);
    }

    fn take_away(&mut self, id: u32) {
        let arrival: Option<Box<Arrival>> = self.under_way[id as usize].take();
        self.vacant.push(id);
        if let Some(arrival) = arrival {
            self.end(*arrival);
        }
    }
}
