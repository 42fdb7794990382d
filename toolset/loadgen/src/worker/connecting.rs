//! Opening connections, with a limit on concurrent handshakes.

use std::cmp::Reverse;

use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;

use super::{MAX_HANDSHAKES, RETRY_DELAY, WHEN_NEEDED, Worker};
use crate::clock::now;
use crate::connection::ConnectionState;
use crate::tally::Fault;

impl Worker {
    /// Return the time of the next attempt to open a connection, in nanoseconds, or `u64::MAX` if there is none.
    pub(super) fn next_retry(&self) -> u64 {
        let handshakes = self.pool.handshakes;
        match self.pool.down.peek() {
            Some(Reverse((WHEN_NEEDED, _))) if handshakes < self.backlog.len().min(MAX_HANDSHAKES) => 0,
            Some(Reverse((time, _))) if handshakes < MAX_HANDSHAKES => *time,
            _ => u64::MAX,
        }
    }

    pub(super) fn open_connections(&mut self, time: u64) {
        while self.next_retry() <= time {
            let Some(Reverse((_, i))) = self.pool.down.pop() else { return };
            let connection = &mut self.connections[i as usize];
            let opened = connection
                .open(&self.context.plan.peer, time)
                .and_then(|stream| epoll::add(&self.epoll, stream, EventData::new_u64(u64::from(i)), EventFlags::OUT));
            self.pool.handshakes += 1;
            match opened {
                Ok(()) => {}
                Err(Errno::AGAIN) => self.reopen_after(i, time + RETRY_DELAY / 20), // the Unix socket's queue is full
                Err(_) => self.connect_failed(i, time),
            }
        }
    }

    /// Continue a TCP or TLS handshake after an event. If it is complete, use the connection, or first open the HTTP/2
    /// or WebSocket session.
    pub(super) fn finish_handshake(&mut self, i: u32) {
        let time = now();
        let connection = &mut self.connections[i as usize];
        let Some(stream) = &mut connection.stream else { return };
        let data = EventData::new_u64(u64::from(i));
        let Ok(pending) = stream.continue_handshake() else { return self.connect_failed(i, time) };
        let flags = pending.unwrap_or(EventFlags::IN | EventFlags::RDHUP);
        if epoll::modify(&self.epoll, &*stream, data, flags).is_err() {
            return self.connect_failed(i, time);
        }
        if pending.is_some() {
            return;
        }
        if let Some(session) = stream.negotiated() {
            *self.tally.tls_sessions.entry(session).or_default() += 1;
        }
        if self.context.plan.opens_sessions() {
            self.open_session(i, time);
        } else {
            self.use_connection(i, time);
        }
    }

    /// Start using a connection after the handshake.
    pub(super) fn use_connection(&mut self, i: u32, time: u64) {
        self.pool.handshakes -= 1;
        self.connections[i as usize].state = ConnectionState::Up;
        self.tally.connections_opened += 1;
        self.refill(i, time);
    }

    pub(super) fn connect_failed(&mut self, i: u32, time: u64) {
        self.tally.errors.count(Fault::Connect);
        self.reopen_after(i, time + RETRY_DELAY);
    }

    fn reopen_after(&mut self, i: u32, retry: u64) {
        self.pool.handshakes -= 1;
        self.connections[i as usize].close();
        self.pool.down.push(Reverse((retry, i)));
    }
}
