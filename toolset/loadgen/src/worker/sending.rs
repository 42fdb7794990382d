//! Sending due requests, and refilling the pipelines of a closed loop.

use std::cmp::Reverse;

use rustix::event::epoll::{self, EventData, EventFlags};

use super::{DueRequest, Worker};
use crate::clock::now;
use crate::connection::{NOT_SAMPLED, PendingRequest, Session, WriteOutcome};
use crate::scenario_runner::ScenarioRunner;
use crate::tally::Fault;
use crate::websocket::MessagePool;

impl Worker {
    /// Draw the time at which the next request is due. In a closed loop, requests have no due time.
    pub(super) fn draw_next_due(&mut self) {
        self.next_due = match &mut self.schedule {
            Some(schedule) => schedule.draw(),
            None => self.runner.as_ref().map_or(u64::MAX, ScenarioRunner::next_arrival),
        };
    }

    /// Send all requests that are due by `time` and before `stop`. If no connection is free, put them into the backlog.
    #[inline]
    pub(super) fn send_due(&mut self, time: u64, stop: u64) {
        while self.next_due <= time && self.next_due < stop {
            let arrival = self.runner.as_mut().map_or(0, ScenarioRunner::begin_arrival);
            self.backlog.push_back(DueRequest { intended: self.next_due, noticed: time, arrival, repeated: None });
            self.tally.due += 1;
            self.draw_next_due();
            self.dispatch(0);
        }
        self.tally.backlog_peak = self.tally.backlog_peak.max(self.backlog.len() as u64);
    }

    /// Send requests from the backlog while connections are free. `free_since` is the time at which a connection became
    /// free, or 0 if connections were free before the requests became due.
    #[inline]
    pub(super) fn dispatch(&mut self, free_since: u64) {
        while !self.backlog.is_empty() {
            let Some(i) = self.take_free_connection() else { return };
            if let Some(due) = self.backlog.pop_front() {
                self.send(i, due, free_since);
            }
        }
    }

    fn take_free_connection(&mut self) -> Option<u32> {
        let depth = self.context.plan.arguments.depth;
        while let Some(i) = self.pool.free.pop_front() {
            let connection = &mut self.connections[i as usize];
            connection.in_free_list = false;
            if connection.has_room(depth) {
                return Some(i);
            }
        }
        None
    }

    /// Send more requests on a connection that has had room for them since `time`.
    #[inline]
    pub(super) fn refill(&mut self, i: u32, time: u64) {
        if !self.closed_loop {
            self.offer(i);
            self.dispatch(time);
            return;
        }
        let connection = &mut self.connections[i as usize];
        match connection.session {
            Session::Http1 => {
                if self.sending
                    && time < self.context.period.stop()
                    && connection.outstanding.is_empty()
                    && connection.has_room(self.context.plan.arguments.depth)
                {
                    if self.context.plan.arguments.close_after.is_some_and(|limit| connection.served >= limit) {
                        return self.reconnect(i, time);
                    }
                    self.send_batch(i, time);
                }
            }
            Session::Http2(_) => self.fill_streams(i, time),
            Session::WebSocket(_) => self.fill_messages(i, time),
        }
    }

    /// Add a connection to an open loop's free connections, if it has room for a request.
    fn offer(&mut self, i: u32) {
        let connection = &mut self.connections[i as usize];
        if !connection.in_free_list && connection.has_room(self.context.plan.arguments.depth) {
            connection.in_free_list = true;
            self.pool.free.push_back(i);
        }
    }

    /// Close a connection without outstanding requests, and open it again.
    fn reconnect(&mut self, i: u32, time: u64) {
        self.connections[i as usize].close();
        self.pool.down.push(Reverse((time, i)));
    }

    /// Send a due request on a connection that has been free since `free_since`.
    fn send(&mut self, i: u32, due: DueRequest, free_since: u64) {
        let plan = &self.context.plan;
        let (bytes, place, key) = if let Some(runner) = &mut self.runner {
            let (bytes, capture) = runner.write_request(due.arrival, &plan.headers);
            (bytes, due.arrival, if capture { 0 } else { NOT_SAMPLED })
        } else if let Session::WebSocket(_) = self.connections[i as usize].session {
            let place = MessagePool::draw(&mut self.random);
            self.messages.push(place, &mut self.random, &mut self.batch);
            (self.batch.as_slice(), place, NOT_SAMPLED)
        } else {
            let (place, key) = due.repeated.unwrap_or_else(|| {
                let place = plan.requests.draw(&mut self.random);
                (place, self.sampler.key(|| self.random.bits()))
            });
            (plan.requests.get(place).bytes.as_slice(), place, key)
        };
        let time = now();
        // Lag is the delay that the generator causes. It excludes the time that the request spent waiting for a free
        // connection.
        let lag = (due.noticed - due.intended) + time.saturating_sub(free_since.max(due.noticed));
        if due.repeated.is_none() {
            self.tally.lag.record(lag, 1);
        }
        let connection = &mut self.connections[i as usize];
        connection.outstanding.push_back(PendingRequest { intended: due.intended, sent: time, place, key });
        self.outstanding += 1;
        self.tally.sent += 1;
        let outcome = if let Session::Http2(session) = &mut connection.session {
            let bodiless = plan.requests.get(place).bodiless;
            session.send(&plan.encoded[place as usize], bodiless, key != NOT_SAMPLED, &mut self.batch);
            connection.write(&self.batch)
        } else {
            connection.write(bytes)
        };
        if plan.opens_sessions() {
            self.batch.clear();
        }
        self.handle_write(i, outcome);
        self.offer(i);
    }

    /// Send the `depth` requests that a closed loop keeps outstanding on a connection.
    #[inline]
    fn send_batch(&mut self, i: u32, time: u64) {
        let connection = &mut self.connections[i as usize];
        let (requests, depth) = (&self.context.plan.requests, self.context.plan.arguments.depth);
        let drawn = requests.count() > 1;
        if drawn {
            self.batch.clear();
        }
        for _ in 0..depth {
            let mut place = 0;
            if drawn {
                place = requests.draw(&mut self.random);
                self.batch.extend_from_slice(&requests.get(place).bytes);
            }
            let key = self.sampler.key(|| self.random.bits());
            connection.outstanding.push_back(PendingRequest { intended: time, sent: time, place, key });
        }
        self.outstanding += depth;
        self.tally.sent += depth as u64;
        let outcome = connection.write(&self.batch);
        self.handle_write(i, outcome);
    }

    #[inline]
    pub(super) fn handle_write(&mut self, i: u32, outcome: WriteOutcome) {
        match outcome {
            WriteOutcome::Complete => {}
            WriteOutcome::Partial => self.watch(i, EventFlags::IN | EventFlags::RDHUP | EventFlags::OUT),
            WriteOutcome::Broken => self.write_failed(i),
        }
    }

    pub(super) fn write_more(&mut self, i: u32) {
        match self.connections[i as usize].flush() {
            WriteOutcome::Complete => {
                self.watch(i, EventFlags::IN | EventFlags::RDHUP);
                self.refill(i, now());
            }
            WriteOutcome::Partial => {}
            WriteOutcome::Broken => self.write_failed(i),
        }
    }

    fn watch(&mut self, i: u32, flags: EventFlags) {
        if let Some(stream) = &self.connections[i as usize].stream {
            if epoll::modify(&self.epoll, stream, EventData::new_u64(u64::from(i)), flags).is_err() {
                self.write_failed(i);
            }
        }
    }

    fn write_failed(&mut self, i: u32) {
        self.tally.connections_closed_by_peer += 1;
        self.lose_connection(i, now(), Fault::Write, Fault::Closed);
    }
}
