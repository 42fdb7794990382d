//! Messages on WebSocket connections, and their echoes.

use super::Worker;
use crate::connection::{NOT_SAMPLED, PendingRequest, Session};
use crate::tally::Fault;
use crate::websocket::{MessageEvent, MessagePool};

impl Worker {
    /// Read the messages in `data`. Return false if the connection was lost.
    #[inline]
    pub(super) fn read_messages(&mut self, i: u32, data: &[u8], time: u64) -> bool {
        let mut at = 0;
        while at < data.len() {
            let connection = &mut self.connections[i as usize];
            let Session::WebSocket(session) = &mut connection.session else { return false };
            let expected = connection.outstanding.front().map(|message| self.messages.get(message.place));
            let unsolicited = expected.is_none();
            let was_closing = session.closing; // read here, because `advance` may reply to a close frame
            let Ok((used, event)) = session.advance(&data[at..], expected, &mut self.batch) else {
                return self.abandon(i, time, Fault::Framing);
            };
            at += used;
            match event {
                None => {}
                Some(MessageEvent::Opened) => self.use_connection(i, time),
                Some(MessageEvent::Message { .. }) if unsolicited => {
                    self.tally.unsolicited_responses += 1;
                    self.tally.unsolicited_bytes += used as u64;
                }
                Some(MessageEvent::Message { equal }) => {
                    let Some(message) = connection.outstanding.pop_front() else { return false };
                    connection.responses += 1;
                    self.outstanding -= 1;
                    self.tally.received += 1;
                    self.conclude(message, if equal { None } else { Some(Fault::Mismatch) }, time);
                }
                Some(MessageEvent::Closed { normal }) => {
                    if was_closing && !self.sending && connection.outstanding.is_empty() {
                        self.tally.normal_closures += u64::from(normal);
                        connection.close();
                        self.batch.clear();
                        return false;
                    }
                    self.tally.connections_closed_by_peer += 1;
                    return self.abandon(i, time, Fault::Closed);
                }
            }
        }
        self.check_replies(i, time)
    }

    /// In a closed loop, send messages until the connection has no room.
    #[inline]
    pub(super) fn fill_messages(&mut self, i: u32, time: u64) {
        let depth = self.context.plan.arguments.depth;
        let connection = &mut self.connections[i as usize];
        if self.sending && time < self.context.period.stop() {
            while connection.has_room(depth) {
                let place = MessagePool::draw(&mut self.random);
                self.messages.push(place, &mut self.random, &mut self.batch);
                connection.outstanding.push_back(PendingRequest {
                    intended: time,
                    sent: time,
                    place,
                    key: NOT_SAMPLED,
                });
                self.outstanding += 1;
                self.tally.sent += 1;
            }
        }
        self.write_batch(i);
    }

    /// Send close frames on all WebSocket connections, after the last echo.
    pub(super) fn close_sessions(&mut self) {
        for i in 0..self.connections.len() as u32 {
            if let Session::WebSocket(session) = &mut self.connections[i as usize].session {
                session.close(&mut self.batch);
                self.write_batch(i);
            }
        }
    }
}
