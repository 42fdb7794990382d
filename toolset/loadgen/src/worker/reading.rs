//! Waiting for events, reading responses and counting them.

use std::cmp::Reverse;

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, EventFlags};

use super::{DueRequest, WAKE, WHEN_NEEDED, Worker};
use crate::clock::{now, timespec};
use crate::connection::{ConnectionState, NOT_SAMPLED, PendingRequest, Session};
use crate::response::{CapturedResponse, Response};
use crate::sampling::Sample;
use crate::scenario_runner::RequestTimes;
use crate::tally::Fault;
use crate::transport::is_transient;

impl Worker {
    /// Sleep until `until` or until an event occurs, then handle all events.
    pub(super) fn wait(&mut self, time: u64, until: u64) {
        self.events.clear();
        let timeout = timespec(until.saturating_sub(time));
        let _ = epoll::wait(&self.epoll, spare_capacity(&mut self.events), Some(&timeout)); // no events if interrupted
        for at in 0..self.events.len() {
            let event = self.events[at];
            let id = { event.data }.u64();
            if id == WAKE {
                let _ = rustix::io::read(&self.context.wake, &mut [0; 8]);
                continue;
            }
            self.handle(id as u32, event.flags);
        }
    }

    #[inline]
    fn handle(&mut self, i: u32, flags: EventFlags) {
        match self.connections[i as usize].state {
            ConnectionState::Up | ConnectionState::Opening => {
                if flags.contains(EventFlags::OUT) {
                    self.write_more(i);
                    if self.connections[i as usize].state == ConnectionState::Down {
                        return; // the write failed, and the connection will be opened again
                    }
                }
                if flags.intersects(EventFlags::IN | EventFlags::HUP | EventFlags::ERR | EventFlags::RDHUP) {
                    self.read(i);
                }
            }
            ConnectionState::Connecting => self.finish_handshake(i),
            ConnectionState::Down => {}
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
            Ok(0) => self.handle_peer_close(i, time),
            Ok(count) => {
                self.tally.bytes_in += count as u64;
                self.consume(i, &buffer[..count], time);
            }
            Err(error) if is_transient(&error) => {}
            Err(_) => self.handle_peer_close(i, time),
        }
        self.buffer = buffer;
        if self.next_due <= time {
            self.send_due(time, self.context.period.stop());
        }
    }

    /// Read the responses in `data`, then send the requests for which they make room.
    #[inline]
    fn consume(&mut self, i: u32, data: &[u8], time: u64) {
        let alive = match self.connections[i as usize].session {
            Session::Http1 => self.read_responses(i, data, time),
            Session::Http2(_) => self.read_frames(i, data, time),
            Session::WebSocket(_) => self.read_messages(i, data, time),
        };
        if alive {
            self.refill(i, time);
        } else {
            self.dispatch(time); // before the loss, `data` may have completed a step, so the next step may be due
        }
    }

    /// Read the responses in `data`. Return false if the connection was lost.
    #[inline]
    fn read_responses(&mut self, i: u32, data: &[u8], time: u64) -> bool {
        let mut at = 0;
        while at < data.len() {
            let requests = &self.context.plan.requests;
            let connection = &mut self.connections[i as usize];
            if connection.reader.idle() {
                connection.unsolicited = connection.outstanding.is_empty();
                let request = connection.outstanding.front().filter(|_| self.runner.is_none());
                connection.reader.bodiless = request.is_some_and(|request| requests.get(request.place).bodiless);
            }
            let request = if connection.unsolicited { None } else { connection.outstanding.front() };
            let sampled = request.is_some_and(|request| request.key != NOT_SAMPLED);
            let capture = if sampled { Some(&mut connection.capture) } else { None };
            let Ok((used, response)) = connection.reader.advance(&data[at..], &mut self.cache, capture) else {
                if connection.unsolicited {
                    self.tally.unsolicited_bytes += (data.len() - at) as u64; // no request can be blamed for the fault
                }
                self.lose_connection(i, time, Fault::Framing, Fault::Dropped);
                return false;
            };
            at += used;
            if connection.unsolicited {
                self.tally.unsolicited_bytes += used as u64;
                self.tally.unsolicited_responses += u64::from(response.is_some());
            } else if let Some(response) = response {
                self.record_response(i, response, time);
            }
            if response.is_some_and(|response| response.close) {
                self.tally.connections_closed_by_peer += 1;
                self.lose_connection(i, time, Fault::Closed, Fault::Closed);
                return false;
            }
        }
        true
    }

    /// Record the response to the oldest outstanding request of a connection.
    #[inline]
    fn record_response(&mut self, i: u32, response: Response, time: u64) {
        let connection = &mut self.connections[i as usize];
        let Some(request) = connection.outstanding.pop_front() else { return };
        self.count_response(i, response.status);
        let fault = if self.runner.is_some() {
            self.advance_arrival(i, request, response, time)
        } else {
            if request.key != NOT_SAMPLED {
                let mut capture = std::mem::take(&mut self.connections[i as usize].capture);
                self.sample(i, request, response, time, &capture);
                capture.release();
                self.connections[i as usize].capture = capture;
            }
            self.status_fault(request, response.status)
        };
        self.conclude(request, fault, time);
    }

    #[inline]
    pub(super) fn count_response(&mut self, i: u32, status: u16) {
        let connection = &mut self.connections[i as usize];
        connection.responses += 1;
        connection.served += 1;
        self.outstanding -= 1;
        self.tally.received += 1;
        self.tally.statuses.count(status);
    }

    #[inline]
    pub(super) fn status_fault(&self, request: PendingRequest, status: u16) -> Option<Fault> {
        let expected = self.context.plan.requests.get(request.place).expects(status);
        if expected { None } else { Some(Fault::Status) }
    }

    /// Count the outcome of a request with a complete response.
    #[inline]
    pub(super) fn conclude(&mut self, request: PendingRequest, fault: Option<Fault>, time: u64) {
        let tally = &mut self.tally;
        if let Some(fault) = fault {
            tally.errors.count(fault);
            return;
        }
        tally.successes += 1;
        tally.service.record(time.saturating_sub(request.sent), 1);
        if !self.closed_loop {
            tally.latency.record(time.saturating_sub(request.intended), 1);
        }
    }

    /// Record a response to a step of a scenario. Schedule the next step, or return a fault if the response is wrong.
    fn advance_arrival(&mut self, i: u32, request: PendingRequest, response: Response, time: u64) -> Option<Fault> {
        let (runner, capture) = (self.runner.as_mut()?, &self.connections[i as usize].capture);
        let times = RequestTimes { due: request.intended, sent: request.sent, received: time };
        match runner.record_response(request.place, response.status, capture, times) {
            Ok(next_step_due) => {
                if next_step_due {
                    self.tally.due += 1;
                    self.backlog.push_back(DueRequest {
                        intended: time,
                        noticed: time,
                        arrival: request.place,
                        repeated: None,
                    });
                }
                None
            }
            Err(fault) => Some(fault),
        }
    }

    pub(super) fn sample(
        &mut self,
        i: u32,
        request: PendingRequest,
        response: Response,
        time: u64,
        capture: &CapturedResponse,
    ) {
        let connection = &self.connections[i as usize];
        let sample = Sample {
            key: request.key,
            connection: connection.number,
            request: request.place,
            sequence: connection.responses - 1,
            intended: request.intended,
            sent: request.sent,
            received: time,
            status: response.status,
            size: response.size,
            ..Sample::default()
        };
        if !capture.truncated {
            self.sampler.add(sample, capture);
        }
    }

    /// Handle a connection that the peer closed or reset.
    fn handle_peer_close(&mut self, i: u32, time: u64) {
        let connection = &mut self.connections[i as usize];
        // A closed loop has no backlog to trigger reopening, so it reopens connections immediately.
        let idle = self.sending && !self.closed_loop && connection.outstanding.is_empty();
        if let Some(response) = connection.reader.end() {
            if connection.unsolicited {
                self.tally.unsolicited_responses += 1;
            } else {
                self.record_response(i, response, time);
            }
        }
        self.tally.connections_closed_by_peer += 1;
        self.lose_connection(i, if idle { WHEN_NEEDED } else { time }, Fault::Closed, Fault::Closed);
        self.dispatch(time);
    }

    /// Close a connection, and schedule the reopening at `retry`.
    ///
    /// The oldest outstanding request fails with `first`, later requests with `rest`.
    pub(super) fn lose_connection(&mut self, i: u32, retry: u64, first: Fault, rest: Fault) {
        if self.connections[i as usize].state == ConnectionState::Opening {
            return self.connect_failed(i, now());
        }
        let connection = &mut self.connections[i as usize];
        let lost = std::mem::take(&mut connection.outstanding);
        self.outstanding -= lost.len();
        if connection.state == ConnectionState::Connecting {
            self.pool.handshakes -= 1;
        }
        connection.close();
        self.pool.down.push(Reverse((retry, i)));
        for (position, request) in lost.iter().enumerate() {
            let fault = if position == 0 { first } else { rest };
            self.tally.errors.count(fault);
            if let Some(runner) = &mut self.runner {
                runner.record_fault(request.place, fault);
            }
        }
    }

    /// Close connections on which the oldest request or the handshake has exceeded the timeout.
    pub(super) fn check_timeouts(&mut self, time: u64) {
        let timeout = self.context.plan.arguments.timeout;
        for i in 0..self.connections.len() as u32 {
            let connection = &self.connections[i as usize];
            match connection.state {
                ConnectionState::Up => {
                    let oldest = connection.outstanding.front().map(|request| request.sent);
                    if oldest.is_some_and(|sent| sent + timeout <= time) {
                        self.tally.connections_hung += 1;
                        self.lose_connection(i, time, Fault::Timeout, Fault::Dropped);
                    }
                }
                ConnectionState::Down => {}
                _ if connection.since + timeout <= time => self.connect_failed(i, time),
                _ => {}
            }
        }
    }
}
