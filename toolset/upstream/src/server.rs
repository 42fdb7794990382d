//! The event loop: connections, requests and delayed responses on a single thread.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::num::NonZeroU64;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use memchr::memmem::Finder;
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::thread::set_current_timer_slack;

use crate::clock::{SECOND, now, timespec};

const BUFFER: usize = 256 * 1024;
/// Maximum size of a request, in bytes. A longer request closes the connection.
const REQUEST_LIMIT: usize = 64 * 1024;
const LISTENER: u64 = u64::MAX;
/// First epoll identifier of the descriptors added by `watch`.
const WATCHED: u64 = u64::MAX - 16;

/// Determines the content and the send time of each response.
pub trait Responder {
    /// Return when the response to a request received at `time` is due, in monotonic nanoseconds. If the result is in
    /// the past, the response is sent immediately.
    fn due(&mut self, time: u64) -> u64;
    /// Append to `out` the response that is due at time `due`.
    fn write(&mut self, due: u64, out: &mut Vec<u8>);
    /// Return the time until which the server must stall, or `None` if it should not stall.
    fn stall(&mut self, _time: u64) -> Option<u64> {
        None
    }
    /// Count an accepted connection.
    fn accepted(&mut self) {}
}

/// A connection and its pending responses, which are sent in request order.
#[derive(Debug)]
struct Client {
    stream: TcpStream,
    carry: Vec<u8>,
    due: VecDeque<u64>, // times at which the pending responses are due
    out: Vec<u8>,
    blocked: bool,
    generation: u32, // distinguishes connections that reuse an index, so stale timers can be ignored
}

/// A server that makes progress only in `poll`, which the caller must call repeatedly.
pub struct Server {
    listener: TcpListener,
    epoll: OwnedFd,
    events: Vec<epoll::Event>,
    buffer: Vec<u8>,
    clients: Vec<Option<Client>>,
    vacant: Vec<u32>,
    generation: u32,
    timers: BinaryHeap<Reverse<(u64, u32, u32)>>, // time, index, generation
    end: Finder<'static>,
}

impl Server {
    /// Create a server for a listening socket.
    pub fn new(listener: TcpListener) -> std::io::Result<Self> {
        listener.set_nonblocking(true)?;
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, &listener, EventData::new_u64(LISTENER), EventFlags::IN)?;
        let _ = set_current_timer_slack(NonZeroU64::new(1)); // if refused, timers are up to 50 µs late
        Ok(Self {
            listener,
            epoll,
            events: Vec::with_capacity(1024),
            buffer: vec![0; BUFFER],
            clients: Vec::new(),
            vacant: Vec::new(),
            generation: 0,
            timers: BinaryHeap::new(),
            end: Finder::new(b"\r\n\r\n"),
        })
    }

    /// Make `poll` report `id` (0 to 7) when `file` becomes readable.
    pub fn watch(&self, file: BorrowedFd<'_>, id: u64) -> std::io::Result<()> {
        epoll::add(&self.epoll, file, EventData::new_u64(WATCHED + id), EventFlags::IN)?;
        Ok(())
    }

    /// Return the number of open connections.
    pub fn connections(&self) -> usize {
        self.clients.len() - self.vacant.len()
    }

    /// Send due responses, then wait for events and handle them. `readable` receives the ids of readable watched files.
    pub fn poll<R: Responder>(&mut self, responder: &mut R, readable: &mut Vec<u64>) -> std::io::Result<()> {
        readable.clear();
        let mut time = now();
        if let Some(until) = responder.stall(time) {
            std::thread::sleep(std::time::Duration::from_nanos(until.saturating_sub(time)));
            time = now();
        }
        while let Some(&Reverse((due, index, generation))) = self.timers.peek() {
            if due > time {
                break;
            }
            self.timers.pop();
            if self.clients[index as usize].as_ref().is_some_and(|client| client.generation == generation) {
                self.send_due(index, time, responder);
            }
        }
        let wait = self.timers.peek().map_or(SECOND, |Reverse((due, ..))| due.saturating_sub(now()));
        self.events.clear();
        let _ = epoll::wait(&self.epoll, spare_capacity(&mut self.events), Some(&timespec(wait)));
        for at in 0..self.events.len() {
            let event = self.events[at];
            let flags = event.flags;
            match { event.data }.u64() {
                LISTENER => self.accept(responder)?,
                id if id >= WATCHED => readable.push(id - WATCHED),
                index => {
                    if flags.contains(EventFlags::OUT) {
                        self.send_due(index as u32, now(), responder);
                    }
                    if flags.intersects(EventFlags::IN | EventFlags::HUP | EventFlags::ERR) {
                        self.read(index as u32, responder);
                    }
                }
            }
        }
        Ok(())
    }

    fn accept<R: Responder>(&mut self, responder: &mut R) -> std::io::Result<()> {
        loop {
            let stream = match self.listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                // There are too many open files, or the client has disconnected. Serve the existing connections.
                Err(_) => return Ok(()),
            };
            stream.set_nonblocking(true)?;
            stream.set_nodelay(true)?;
            self.generation = self.generation.wrapping_add(1);
            let index = self.vacant.pop().unwrap_or_else(|| {
                self.clients.push(None);
                self.clients.len() as u32 - 1
            });
            epoll::add(&self.epoll, stream.as_fd(), EventData::new_u64(u64::from(index)), EventFlags::IN)?;
            self.clients[index as usize] = Some(Client {
                stream,
                carry: Vec::new(),
                due: VecDeque::new(),
                out: Vec::new(),
                blocked: false,
                generation: self.generation,
            });
            responder.accepted();
        }
    }

    fn read<R: Responder>(&mut self, index: u32, responder: &mut R) {
        let Some(client) = &mut self.clients[index as usize] else { return };
        let count = match client.stream.read(&mut self.buffer) {
            Ok(0) => return self.close(index, responder),
            Ok(count) => count,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => return,
            Err(_) => return self.close(index, responder),
        };
        let time = now();
        let requests = count_requests(&self.end, &mut client.carry, &self.buffer[..count]);
        let too_long = client.carry.len() > REQUEST_LIMIT;
        for _ in 0..requests {
            let due = responder.due(time).max(client.due.back().copied().unwrap_or(0)); // keep responses in order
            client.due.push_back(due);
            if due > time {
                self.timers.push(Reverse((due, index, client.generation)));
            }
        }
        if too_long {
            return self.close(index, responder);
        }
        self.send_due(index, time, responder);
    }

    /// Write the due responses of a connection.
    fn send_due<R: Responder>(&mut self, index: u32, time: u64, responder: &mut R) {
        let Some(client) = &mut self.clients[index as usize] else { return };
        while let Some(due) = client.due.front().copied().filter(|&due| due <= time) {
            responder.write(due, &mut client.out);
            client.due.pop_front();
        }
        if client.out.is_empty() {
            return;
        }
        match client.stream.write(&client.out) {
            Ok(count) if count == client.out.len() => client.out.clear(),
            Ok(count) => {
                client.out.drain(..count);
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(_) => return self.close(index, responder),
        }
        let blocked = !client.out.is_empty();
        if blocked != client.blocked {
            client.blocked = blocked;
            let flags = if blocked { EventFlags::IN | EventFlags::OUT } else { EventFlags::IN };
            let _ = epoll::modify(&self.epoll, client.stream.as_fd(), EventData::new_u64(u64::from(index)), flags);
        }
    }

    /// Close a connection. Generate and discard its pending responses, so that the responder's counts stay correct.
    fn close<R: Responder>(&mut self, index: u32, responder: &mut R) {
        if let Some(client) = self.clients[index as usize].take() {
            let mut discarded = Vec::new();
            for due in client.due {
                discarded.clear();
                responder.write(due, &mut discarded);
            }
            self.vacant.push(index);
        }
    }
}

/// Count the complete requests in `carry` followed by `data`. Leave the incomplete rest in `carry` for the next call.
/// Requests have no body.
pub fn count_requests(end: &Finder, carry: &mut Vec<u8>, data: &[u8]) -> usize {
    let joined;
    let data = if carry.is_empty() {
        data
    } else {
        carry.extend_from_slice(data);
        joined = std::mem::take(carry);
        &joined
    };
    let (mut count, mut last) = (0, 0);
    for at in end.find_iter(data) {
        count += 1;
        last = at + 4;
    }
    carry.extend_from_slice(&data[last..]);
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_count_does_not_depend_on_segmentation() {
        let stream = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n".repeat(5);
        for piece in 1..stream.len() {
            let mut carry = Vec::new();
            let end = Finder::new(b"\r\n\r\n");
            let count: usize = stream.chunks(piece).map(|part| count_requests(&end, &mut carry, part)).sum();
            assert_eq!((count, carry.len()), (5, 0), "pieces of {piece}");
        }
    }
}
