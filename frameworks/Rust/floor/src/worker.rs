//! A thread's event loop: clients, their requests, and the jobs that wait for PostgreSQL, a timer or the upstream.

mod calls;
mod jobs;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use slab::Slab;

use crate::connection::{Connection, Interest};
use crate::database::Database;
use crate::http::{self, Response, Status};
use crate::shared::Shared;
use crate::waker::Waker;

use self::jobs::Job;

const EVENTS: usize = 1024;
const SCRATCH: usize = 64 * 1024;
/// Limit, in bytes, on each client's input buffer and output buffer. If the input buffer is full, no more input is read
/// from the client. If the output buffer is full, no more of the client's requests are handled.
const BACKLOG: usize = 1 << 20;

const LISTENER: u64 = 0;
const WAKER: u64 = 1;
const DATABASE: u64 = 2;
const CLIENT: u64 = 1 << 32;
const UPSTREAM: u64 = 1 << 33;
const INDEX: u64 = CLIENT - 1;

struct Client {
    connection: Connection,
    /// Identifies the client. Unlike the client's index, it is never reused.
    serial: u64,
    /// Whether a request is running as a job. Later requests wait for it, so responses keep their order.
    busy: bool,
    /// Whether to close the connection after writing the pending output.
    close: bool,
}

/// A connection to the upstream, and the job that waits for the response.
struct Call {
    connection: Connection,
    job: Option<usize>,
}

pub struct Worker {
    shared: Arc<Shared>,
    epoll: OwnedFd,
    waker: Waker,
    listener: Option<TcpListener>,
    database: Database,
    clients: Slab<Client>,
    serial: u64,
    jobs: Slab<Job>,
    timers: BinaryHeap<Reverse<(Instant, usize)>>,
    calls: Slab<Call>,
    idle_calls: Vec<usize>,
    /// The jobs of calls that wait for a connection.
    queued_calls: VecDeque<usize>,
    second: u64,
    date: [u8; 29],
    scratch: Vec<u8>,
    body: Vec<u8>,
}

impl Worker {
    pub fn new(listener: TcpListener, shared: Arc<Shared>, waker: Waker) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let readable = epoll::EventFlags::IN;
        epoll::add(&epoll, &listener, epoll::EventData::new_u64(LISTENER), readable)?;
        epoll::add(&epoll, &waker, epoll::EventData::new_u64(WAKER), readable)?;
        let database = Database::new(shared.database.clone(), waker.clone());
        Ok(Self {
            shared,
            epoll,
            waker,
            listener: Some(listener),
            database,
            clients: Slab::new(),
            serial: 0,
            jobs: Slab::new(),
            timers: BinaryHeap::new(),
            calls: Slab::new(),
            idle_calls: Vec::new(),
            queued_calls: VecDeque::new(),
            second: 0,
            date: [0; 29],
            scratch: vec![0; SCRATCH],
            body: Vec::new(),
        })
    }

    /// Runs until a stop signal has arrived and all clients have disconnected.
    pub fn run(&mut self) -> io::Result<()> {
        let mut events = Vec::with_capacity(EVENTS);
        while self.listener.is_some() || !self.clients.is_empty() {
            let timeout = self.timers.peek().map(|Reverse((due, _))| {
                let left = due.saturating_duration_since(Instant::now());
                Timespec { tv_sec: left.as_secs() as _, tv_nsec: left.subsec_nanos().into() }
            });
            events.clear();
            match epoll::wait(&self.epoll, spare_capacity(&mut events), timeout.as_ref()) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            self.refresh_date();
            for event in &events {
                let (token, flags) = (event.data.u64(), event.flags);
                match token {
                    LISTENER => self.accept()?,
                    WAKER => self.woken()?,
                    DATABASE => self.database_ready(),
                    _ if token & CLIENT != 0 => self.client_ready((token & INDEX) as usize, flags),
                    _ => self.call_ready((token & INDEX) as usize, flags),
                }
            }
            self.fire_timers();
            // Send the queries of all requests read in this iteration in a single write.
            self.flush_database();
        }
        Ok(())
    }

    fn refresh_date(&mut self) {
        let now = SystemTime::now();
        let second = now.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
        if second != self.second {
            self.second = second;
            self.date.copy_from_slice(httpdate::fmt_http_date(now).as_bytes());
        }
    }

    fn accept(&mut self) -> io::Result<()> {
        let Some(listener) = &self.listener else { return Ok(()) };
        loop {
            let stream = match listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => {
                    eprintln!("cannot accept a connection: {error}");
                    return Ok(());
                }
            };
            stream.set_nonblocking(true)?;
            stream.set_nodelay(true)?;
            self.serial += 1;
            let entry = self.clients.vacant_entry();
            let token = epoll::EventData::new_u64(CLIENT | entry.key() as u64);
            epoll::add(&self.epoll, &stream, token, epoll::EventFlags::IN)?;
            let connection = Connection::new(stream);
            entry.insert(Client { connection, serial: self.serial, busy: false, close: false });
        }
    }

    fn woken(&mut self) -> io::Result<()> {
        self.waker.clear();
        if let Some(stream) = self.database.made() {
            epoll::add(&self.epoll, &stream, epoll::EventData::new_u64(DATABASE), epoll::EventFlags::IN)?;
            self.database.connection = Some(Connection::new(stream));
        }
        if self.shared.stopping() && self.listener.take().is_some() {
            let all: Vec<usize> = self.clients.iter().map(|(index, _)| index).collect();
            for index in all {
                self.clients[index].close |= !self.clients[index].busy;
                self.advance(index);
            }
        }
        Ok(())
    }

    // ---- clients -------------------------------------------------------------------------------------------------

    fn client_ready(&mut self, index: usize, flags: epoll::EventFlags) {
        let Some(client) = self.clients.get_mut(index) else { return };
        let gone = flags.intersects(epoll::EventFlags::HUP | epoll::EventFlags::ERR);
        if gone || (!client.connection.ended && client.connection.read(&mut self.scratch).is_err()) {
            self.clients.remove(index); // closing a socket also removes it from epoll
            return;
        }
        self.advance(index);
    }

    /// Handles buffered requests until a request has to wait, and writes the finished responses.
    fn advance(&mut self, index: usize) {
        let input = std::mem::take(&mut self.clients[index].connection.input);
        let mut used = 0;
        loop {
            let client = &self.clients[index];
            if client.busy || client.close || client.connection.output.len() > BACKLOG {
                break;
            }
            let Some(mut request) = http::parse(&input[used..]) else { break };
            used += request.length;
            request.close |= self.listener.is_none();
            self.begin(index, request);
        }
        let client = &mut self.clients[index];
        client.connection.input = input;
        client.connection.input.drain(..used);
        let failed = client.connection.write().is_err();
        let pending = client.connection.pending();
        let over = !client.busy && (client.close || client.connection.ended);
        if failed || (over && !pending) {
            self.clients.remove(index);
            return;
        }
        let read = !client.connection.ended && !client.close && client.connection.input.len() < BACKLOG;
        let token = CLIENT | index as u64;
        look_for(&self.epoll, token, &mut client.connection, Interest { read, write: pending });
    }

    /// Appends a response with `self.body` to a client's output.
    fn respond(&mut self, index: usize, status: Status, content_type: &[u8], head: bool, close: bool) {
        let client = &mut self.clients[index];
        client.close |= close;
        Response { status, content_type, body: &self.body, head, close }
            .write(&self.date, &mut client.connection.output);
    }
}

/// Updates the registered epoll events if they change.
fn look_for(epoll: &OwnedFd, token: u64, connection: &mut Connection, interest: Interest) {
    if connection.interest == interest {
        return;
    }
    connection.interest = interest;
    let mut flags = epoll::EventFlags::empty();
    flags.set(epoll::EventFlags::IN, interest.read);
    flags.set(epoll::EventFlags::OUT, interest.write);
    if let Err(error) = epoll::modify(epoll, &connection.stream, epoll::EventData::new_u64(token), flags) {
        eprintln!("epoll_ctl: {error}");
    }
}
