//! Requests and responses on HTTP/2 streams.

use super::{DueRequest, Worker};
use crate::connection::{ConnectionState, NOT_SAMPLED, PendingRequest, Session};
use crate::http2::{Http2Session, StreamEvent};
use crate::response::{CapturedResponse, Response};
use crate::tally::Fault;
use crate::websocket::WebSocketSession;

/// Maximum number of replies to control frames that may wait for the server to read them.
const REPLY_LIMIT: u32 = 10_000;

impl Worker {
    /// Start HTTP/2 or WebSocket on a new connection. Requests follow once the server has responded.
    pub(super) fn open_session(&mut self, i: u32, time: u64) {
        let connection = &mut self.connections[i as usize];
        connection.state = ConnectionState::Opening;
        connection.since = time;
        let plan = &self.context.plan;
        connection.session = if plan.http2() {
            Session::Http2(Box::new(Http2Session::new(self.limits, &mut self.batch)))
        } else {
            let target = &plan.requests.get(0).target;
            let session = WebSocketSession::new(target, &plan.headers, &mut self.random, &mut self.batch);
            Session::WebSocket(Box::new(session))
        };
        self.write_batch(i);
    }

    /// Read the frames in `data`. Return false if the connection was lost.
    #[inline]
    pub(super) fn read_frames(&mut self, i: u32, data: &[u8], time: u64) -> bool {
        let mut at = 0;
        while at < data.len() {
            let connection = &mut self.connections[i as usize];
            let Session::Http2(session) = &mut connection.session else { return false };
            let Ok((used, event)) = session.advance(&data[at..], &mut self.batch) else {
                return self.abandon(i, time, Fault::Framing);
            };
            at += used;
            if let Some(event) = event {
                self.handle_event(i, event, time);
            }
        }
        if matches!(&self.connections[i as usize].session, Session::Http2(session) if session.finished()) {
            self.tally.connections_closed_by_peer += 1;
            return self.abandon(i, time, Fault::Closed);
        }
        self.check_replies(i, time)
    }

    /// Send the pending replies to control frames; a closed loop sends them together with the next requests. Close the
    /// connection if the server does not read the replies. Return false if the connection was lost.
    pub(super) fn check_replies(&mut self, i: u32, time: u64) -> bool {
        let connection = &mut self.connections[i as usize];
        let all_written = connection.all_written();
        let replies = match &mut connection.session {
            Session::Http1 => return false,
            Session::Http2(session) => &mut session.replies,
            Session::WebSocket(session) => &mut session.replies,
        };
        if all_written {
            *replies = 0;
        } else if *replies > REPLY_LIMIT {
            return self.abandon(i, time, Fault::Framing);
        }
        if !self.closed_loop {
            self.write_batch(i);
        }
        self.connections[i as usize].state != ConnectionState::Down
    }

    /// Close a connection, and return false to signal the loss.
    pub(super) fn abandon(&mut self, i: u32, time: u64, fault: Fault) -> bool {
        self.batch.clear();
        self.lose_connection(i, time, fault, Fault::Dropped);
        false
    }

    fn handle_event(&mut self, i: u32, event: StreamEvent, time: u64) {
        let connection = &mut self.connections[i as usize];
        match event {
            StreamEvent::Opened => {
                if let Session::Http2(session) = &connection.session {
                    self.settings.merge(&session.settings);
                }
                self.use_connection(i, time);
            }
            StreamEvent::Response { index, status, size, malformed, capture } => {
                let Some(request) = connection.outstanding.remove(index) else { return };
                if malformed {
                    self.outstanding -= 1;
                    self.tally.errors.count(Fault::Framing);
                    return;
                }
                self.count_response(i, status);
                let capture: Option<Box<CapturedResponse>> = capture;
                if let Some(capture) = capture {
                    self.sample(i, request, Response { status, close: false, size }, time, &capture);
                }
                let fault = self.status_fault(request, status);
                self.conclude(request, fault, time);
            }
            StreamEvent::Reset { index } => {
                connection.outstanding.remove(index);
                self.outstanding -= 1;
                self.tally.errors.count(Fault::Reset);
            }
            StreamEvent::GoAway { unprocessed } => {
                let processed = connection.outstanding.len() - unprocessed;
                let requests = connection.outstanding.split_off(processed);
                self.outstanding -= unprocessed;
                self.tally.sent -= unprocessed as u64;
                self.tally.repeated += unprocessed as u64;
                self.tally.goaways += 1;
                for PendingRequest { intended, place, key, .. } in requests.into_iter().rev() {
                    let repeated = Some((place, key));
                    self.backlog.push_front(DueRequest { intended, noticed: time, arrival: 0, repeated });
                }
            }
        }
    }

    /// In a closed loop, send requests until the connection is full, first those to be sent again after a GOAWAY.
    #[inline]
    pub(super) fn fill_streams(&mut self, i: u32, time: u64) {
        let plan = &self.context.plan;
        let draws = self.sending && time < self.context.period.stop();
        let connection = &mut self.connections[i as usize];
        while connection.has_room(plan.arguments.depth) {
            let (intended, (place, key)) = match self.backlog.pop_front() {
                Some(due) => (due.intended, due.repeated.unwrap_or_default()),
                None if draws => {
                    let place = plan.requests.draw(&mut self.random);
                    (time, (place, self.sampler.key(|| self.random.bits())))
                }
                None => break,
            };
            let Session::Http2(session) = &mut connection.session else { return };
            let bodiless = plan.requests.get(place).bodiless;
            session.send(&plan.encoded[place as usize], bodiless, key != NOT_SAMPLED, &mut self.batch);
            connection.outstanding.push_back(PendingRequest { intended, sent: time, place, key });
            self.outstanding += 1;
            self.tally.sent += 1;
        }
        self.write_batch(i);
    }

    /// Write the frames in the batch.
    #[inline]
    pub(super) fn write_batch(&mut self, i: u32) {
        if !self.batch.is_empty() {
            let outcome = self.connections[i as usize].write(&self.batch);
            self.batch.clear();
            self.handle_write(i, outcome);
        }
    }
}
