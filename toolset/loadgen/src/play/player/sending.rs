//! Arrivals when they come, and steps that are due on connections that are free.

use super::Player;
use crate::clock::now;
use crate::connection::Slot;
use crate::play::arrival::Arrival;

impl Player {
    pub(super) fn next_arrival(&self) -> u64 {
        self.streams.iter().map(|stream| stream.next).min().unwrap_or(u64::MAX)
    }

    /// Begin every arrival that came by `time` and before `stop`, in the order of coming.
    pub(super) fn arrive(&mut self, time: u64, stop: u64) {
        while let Some(place) = (0..self.streams.len()).min_by_key(|&place| self.streams[place].next) {
            let stream = &mut self.streams[place];
            let came = stream.next;
            if came > time || came >= stop {
                break;
            }
            stream.next = stream.arrivals.draw();
            let use_case = &self.given.scenario.use_cases[place];
            let arrival = Arrival::new(place, came, time, use_case.draw(&mut stream.random));
            self.tally.courses[place].due += 1;
            self.tally.counters.due_in_time += 1;
            self.tally.operations[use_case.steps[0].operation].due += 1;
            let id = self.vacant.pop().unwrap_or_else(|| {
                self.under_way.push(None);
                self.under_way.len() as u32 - 1
            });
            self.under_way[id as usize] = Some(Box::new(arrival));
            self.waiting.push_back(id);
            self.dispatch(0);
        }
        let backlog = self.waiting.len() as u64;
        self.tally.counters.backlog_peak = self.tally.counters.backlog_peak.max(backlog);
    }

    /// Send what is due as long as there are connections, the last of which is free since `free`.
    pub(super) fn dispatch(&mut self, free: u64) {
        while !self.waiting.is_empty() {
            let Some(i) = self.free_connection() else { return };
            if let Some(id) = self.waiting.pop_front() {
                self.send(i, id, free);
            }
        }
    }

    pub(super) fn free_connection(&mut self) -> Option<u32> {
        while let Some(i) = self.free.pop_front() {
            let connection = &mut self.connections[i as usize];
            connection.listed = false;
            if connection.has_room(1) {
                return Some(i);
            }
        }
        None
    }

    /// Among the free ones, if it is.
    pub(super) fn list(&mut self, i: u32) {
        let connection = &mut self.connections[i as usize];
        if !connection.listed && connection.has_room(1) {
            connection.listed = true;
            self.free.push_back(i);
        }
    }

    pub(super) fn send(&mut self, i: u32, id: u32, free: u64) {
        let Some(arrival) = &mut self.under_way[id as usize] else { return };
        let step = &self.given.scenario.use_cases[arrival.use_case].steps[arrival.step];
        step.write(&self.given.headers, &arrival.values, &mut self.request, &mut self.body);
        let time = now();
        // Waiting for a connection is the server's doing; to notice late and to send late is the generator's.
        let lag = (arrival.noticed - arrival.due) + time.saturating_sub(free.max(arrival.noticed));
        self.tally.lag.record(lag, 1);
        arrival.sent = true;
        let sampled = self.given.keep || !step.captures.is_empty();
        let connection = &mut self.connections[i as usize];
        connection.outstanding.push_back(Slot { intended: arrival.due, sent: time, request: id, sampled });
        let wrote = connection.write(&self.request);
        self.wrote(i, wrote);
    }
}
