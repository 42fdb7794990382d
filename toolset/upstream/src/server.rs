//! Connections, requests and held-back answers on one thread, without waiting for any of them.

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
/// The longest request, in bytes; a longer one ends its connection.
const REQUEST_LIMIT: usize = 64 * 1024;
const LISTENER: u64 = u64::MAX;
/// Names of what `watch` adds begin here.
const WATCHED: u64 = u64::MAX - 16;

/// What is said, and when.
pub trait Answers {
    /// A request has come: the time at which its answer is due (monotonic nanoseconds; not later than now: at once).
    fn due(&mut self, time: u64) -> u64;
    /// The answer to the request that was due at `due` is written now: append its bytes.
    fn write(&mut self, due: u64, out: &mut Vec<u8>);
    /// Until when the server does nothing at all, if it should sleep now.
    fn stall(&mut self, _time: u64) -> Option<u64> {
        None
    }
    /// A connection was accepted.
    fn accepted(&mut self) {}
}

/// A connection and the answers that it waits for. Answers go out in the order of the requests.
#[derive(Debug)]
struct Client {
    stream: TcpStream,
    carry: Vec<u8>,
    due: VecDeque<u64>,
    out: Vec<u8>,
    blocked: bool,
    generation: u32, // of this place, so that a timer of a connection that is gone finds nobody
}

/// The server; it does its work in `turn`.
pub struct Server {
    listener: TcpListener,
    epoll: OwnedFd,
    events: Vec<epoll::Event>,
    buffer: Vec<u8>,
    clients: Vec<Option<Client>>,
    vacant: Vec<u32>,
    generation: u32,
    timers: BinaryHeap<Reverse<(u64, u32, u32)>>, // when, place, generation
    end: Finder<'static>,
}

impl Server {
    /// Listen on this socket.
    pub fn new(listener: TcpListener) -> std::io::Result<Self> {
        listener.set_nonblocking(true)?;
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, &listener, EventData::new_u64(LISTENER), EventFlags::IN)?;
        let _ = set_current_timer_slack(NonZeroU64::new(1)); // where refused, timers are 50 µs late
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

    /// Have `turn` come back with `name` (0 to 7) when this can be read.
    pub fn watch(&self, file: BorrowedFd<'_>, name: u64) -> std::io::Result<()> {
        epoll::add(&self.epoll, file, EventData::new_u64(WATCHED + name), EventFlags::IN)?;
        Ok(())
    }

    /// No longer.
    pub fn unwatch(&self, file: BorrowedFd<'_>) {
        let _ = epoll::delete(&self.epoll, file);
    }

    /// Connections that are open.
    pub fn connections(&self) -> usize {
        self.clients.len() - self.vacant.len()
    }

    /// Answer what is due, then wait for the next event and see to it. Returns the names of watched files that spoke.
    pub fn turn<A: Answers>(&mut self, answers: &mut A, spoke: &mut Vec<u64>) -> std::io::Result<()> {
        spoke.clear();
        let mut time = now();
        if let Some(until) = answers.stall(time) {
            std::thread::sleep(std::time::Duration::from_nanos(until.saturating_sub(time)));
            time = now();
        }
        while let Some(&Reverse((due, place, generation))) = self.timers.peek() {
            if due > time {
                break;
            }
            self.timers.pop();
            if self.clients[place as usize].as_ref().is_some_and(|client| client.generation == generation) {
                self.answer(place, time, answers);
            }
        }
        let wait = self.timers.peek().map_or(SECOND, |Reverse((due, ..))| due.saturating_sub(now()));
        self.events.clear();
        let _ = epoll::wait(&self.epoll, spare_capacity(&mut self.events), Some(&timespec(wait)));
        for at in 0..self.events.len() {
            let event = self.events[at];
            let flags = event.flags;
            match { event.data }.u64() {
                LISTENER => self.accept(answers)?,
                name if name >= WATCHED => spoke.push(name - WATCHED),
                place => {
                    if flags.contains(EventFlags::OUT) {
                        self.answer(place as u32, now(), answers);
                    }
                    if flags.intersects(EventFlags::IN | EventFlags::HUP | EventFlags::ERR) {
                        self.read(place as u32, answers);
                    }
                }
            }
        }
        Ok(())
    }

    fn accept<A: Answers>(&mut self, answers: &mut A) -> std::io::Result<()> {
        loop {
            let stream = match self.listener.accept() {
                Ok((stream, _)) => stream,
                // Too many files, or gone again: those that are here go on.
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => return Ok(()),
            };
            stream.set_nonblocking(true)?;
            stream.set_nodelay(true)?;
            self.generation = self.generation.wrapping_add(1);
            let place = self.vacant.pop().unwrap_or_else(|| {
                self.clients.push(None);
                self.clients.len() as u32 - 1
            });
            epoll::add(&self.epoll, stream.as_fd(), EventData::new_u64(u64::from(place)), EventFlags::IN)?;
            self.clients[place as usize] = Some(Client {
                stream,
                carry: Vec::new(),
                due: VecDeque::new(),
                out: Vec::new(),
                blocked: false,
                generation: self.generation,
            });
            answers.accepted();
        }
    }

    fn read<A: Answers>(&mut self, place: u32, answers: &mut A) {
        let Some(client) = &mut self.clients[place as usize] else { return };
        let count = match client.stream.read(&mut self.buffer) {
            Ok(0) => return self.close(place, answers),
            Ok(count) => count,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => return,
            Err(_) => return self.close(place, answers),
        };
        let time = now();
        let requests = split(&self.end, &mut client.carry, &self.buffer[..count]);
        let too_long = client.carry.len() > REQUEST_LIMIT;
        for _ in 0..requests {
            let due = answers.due(time).max(client.due.back().copied().unwrap_or(0)); // no answer overtakes another
            client.due.push_back(due);
            if due > time {
                self.timers.push(Reverse((due, place, client.generation)));
            }
        }
        if too_long {
            return self.close(place, answers);
        }
        self.answer(place, time, answers);
    }

    /// Write the answers of a connection that are due.
    fn answer<A: Answers>(&mut self, place: u32, time: u64, answers: &mut A) {
        let Some(client) = &mut self.clients[place as usize] else { return };
        while let Some(due) = client.due.front().copied().filter(|&due| due <= time) {
            answers.write(due, &mut client.out);
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
            Err(_) => return self.close(place, answers),
        }
        let blocked = !client.out.is_empty();
        if blocked != client.blocked {
            client.blocked = blocked;
            let flags = if blocked { EventFlags::IN | EventFlags::OUT } else { EventFlags::IN };
            let _ = epoll::modify(&self.epoll, client.stream.as_fd(), EventData::new_u64(u64::from(place)), flags);
        }
    }

    /// The client is gone: answers that were due to it are written to nobody, so that counts stay whole.
    fn close<A: Answers>(&mut self, place: u32, answers: &mut A) {
        if let Some(client) = self.clients[place as usize].take() {
            let mut nowhere = Vec::new();
            for due in client.due {
                nowhere.clear();
                answers.write(due, &mut nowhere);
            }
            self.vacant.push(place);
        }
    }
}

/// Count the requests without a body that end in `carry` and `data` together; keep the rest in `carry`.
pub fn split(end: &Finder, carry: &mut Vec<u8>, data: &[u8]) -> usize {
    let whole;
    let data = if carry.is_empty() {
        data
    } else {
        carry.extend_from_slice(data);
        whole = std::mem::take(carry);
        &whole
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
    fn requests_are_counted_however_their_bytes_are_cut() {
        let stream = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n".repeat(5);
        for piece in 1..stream.len() {
            let mut carry = Vec::new();
            let end = Finder::new(b"\r\n\r\n");
            let count: usize = stream.chunks(piece).map(|part| split(&end, &mut carry, part)).sum();
            assert_eq!((count, carry.len()), (5, 0), "pieces of {piece}");
        }
    }
}
