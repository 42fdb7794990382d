//! A worker thread, which generates a share of the load on a share of the connections.

mod connecting;
mod echoes;
mod reading;
mod sending;
mod streams;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::Errno;

use crate::arguments::{Plan, Protocol};
use crate::clock::{MILLISECOND, SECOND, cpu_seconds, now};
use crate::connection::{Connection, ConnectionState};
use crate::coordination::{CANCELLED, Event, EventSender, LoadPeriod, LoadPhase, WorkerResult};
use crate::http2::{EncodedRequest, Limits, PeerSettings};
use crate::random::Random;
use crate::response::HeadCache;
use crate::sampling::Sampler;
use crate::scenario_runner::ScenarioRunner;
use crate::schedule::Schedule;
use crate::system::{disable_timer_slack, run_queue_wait};
use crate::tally::{LoadCounts, Tally};
use crate::websocket::MessagePool;

/// Size of the read buffer, in bytes.
const BUFFER: usize = 256 * 1024;
/// Memory for captured bodies, in bytes, divided among the connections. Each share is clamped to 1 to 16 MiB. Responses
/// with a longer body are not sampled.
const CAPTURE_MEMORY: usize = 256 * 1024 * 1024;
/// Maximum number of concurrent handshakes per thread. More could overflow the server's accept queue, and the kernel
/// retries a dropped handshake only after a second.
const MAX_HANDSHAKES: usize = 128;
/// Delay before a failed connection is opened again, in nanoseconds.
const RETRY_DELAY: u64 = 100 * MILLISECOND;
/// Retry time of a connection that was closed while idle. It is reopened only when a request needs a connection.
const WHEN_NEEDED: u64 = u64::MAX;
/// Epoll identifier of the wake-up descriptor; connections use their index.
const WAKE: u64 = u64::MAX;

/// A request that is due but still unsent. Times are in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct DueRequest {
    intended: u64,                // time at which it was due
    noticed: u64,                 // time at which the worker noticed that it was due
    arrival: u32,                 // in a scenario, index of the arrival; otherwise 0
    repeated: Option<(u32, u32)>, // table index and sampling key of a request that is sent again
}

/// State that a worker shares with the main thread: the plan, and the means of communication.
#[derive(Debug)]
pub struct WorkerContext {
    pub plan: Arc<Plan>,
    pub period: Arc<LoadPeriod>,
    pub events: EventSender,
    pub wake: OwnedFd, // eventfd that interrupts the worker's wait
}

/// The connections that are ready for a new request, and the connections to reopen.
#[derive(Debug)]
struct ConnectionPool {
    free: VecDeque<u32>, // open loops and scenarios: connections with room for a request, longest free first
    down: BinaryHeap<Reverse<(u64, u32)>>, // closed connections, ordered by the time of the next attempt
    handshakes: usize,
}

/// A worker thread's state.
pub struct Worker {
    index: usize,
    context: WorkerContext,
    epoll: OwnedFd,
    events: Vec<epoll::Event>,
    buffer: Vec<u8>,
    cache: HeadCache,
    connections: Vec<Connection>,
    pool: ConnectionPool,
    backlog: VecDeque<DueRequest>, // oldest first
    outstanding: usize,
    sending: bool,
    closed_loop: bool,
    batch: Vec<u8>, // bytes to write at once: a closed loop's requests, or frames
    limits: Limits, // limits of HTTP/2 connections
    settings: PeerSettings,
    messages: MessagePool, // messages of WebSocket connections
    next_due: u64,
    schedule: Option<Schedule>,     // open loop only
    runner: Option<ScenarioRunner>, // scenario only
    random: Random,
    sampler: Sampler,
    tally: Tally,
}

impl Worker {
    /// Run worker `index` on the current thread, from the first connection to the last response.
    pub fn work(index: usize, context: WorkerContext) {
        let events = context.events.clone();
        match Self::new(index, context) {
            Ok(worker) => worker.run(),
            Err(error) => events.send(Event::Failed { message: format!("cannot start thread {index}: {error}") }),
        }
    }

    fn new(index: usize, context: WorkerContext) -> Result<Self, Errno> {
        let plan = Arc::clone(&context.plan);
        let arguments = &plan.arguments;
        let first_connection = |worker: usize| arguments.connections * worker / arguments.threads;
        let body_limit = CAPTURE_MEMORY / arguments.connections;
        let connections: Vec<Connection> = (first_connection(index)..first_connection(index + 1))
            .map(|number| Connection::new(number as u32, arguments.depth, body_limit))
            .collect();
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, &context.wake, EventData::new_u64(WAKE), EventFlags::IN)?;
        let mut down = BinaryHeap::with_capacity(connections.len());
        down.extend((0..connections.len()).map(|i| Reverse((0, i as u32))));
        let responses = &arguments.responses;
        let share = if responses.file.is_some() && plan.scenario.is_none() { responses.share } else { 0.0 };
        let (max_count, max_bytes) = (responses.max_count / arguments.threads, responses.max_bytes / arguments.threads);
        Ok(Self {
            index,
            epoll,
            events: Vec::with_capacity(connections.len().clamp(16, 1024) + 1),
            buffer: vec![0; BUFFER],
            cache: HeadCache::default(),
            pool: ConnectionPool { free: VecDeque::with_capacity(connections.len()), down, handshakes: 0 },
            backlog: VecDeque::with_capacity(1024),
            outstanding: 0,
            sending: false,
            closed_loop: plan.closed_loop(),
            batch: if plan.opens_sessions() { Vec::new() } else { plan.requests.get(0).bytes.repeat(arguments.depth) },
            limits: Limits {
                depth: arguments.depth,
                window: arguments.window,
                body: body_limit / arguments.depth,
                shared_table: EncodedRequest::share_table(&plan.encoded),
            },
            settings: PeerSettings::default(),
            messages: if arguments.protocol == Protocol::Websocket {
                MessagePool::new(&mut Random::new(arguments.seed))
            } else {
                MessagePool::default()
            },
            next_due: u64::MAX,
            schedule: None,
            runner: plan.scenario.clone().map(|scenario| ScenarioRunner::new(scenario, responses.file.is_some())),
            random: Random::new(arguments.seed.wrapping_mul(31).wrapping_add(index as u64)),
            sampler: Sampler::new(share, max_count, max_bytes),
            tally: Tally::default(),
            connections,
            context,
        })
    }

    /// Connect, wait for the start, generate the load, and wait for outstanding responses.
    fn run(mut self) {
        disable_timer_slack();
        self.establish();
        let up = self.connections.iter().filter(|connection| connection.state == ConnectionState::Up).count();
        self.context.events.send(Event::Connected { connections: up });
        if self.await_start() {
            let waited = run_queue_wait();
            let load = self.load();
            self.drain(load, waited);
        }
    }

    // ---- phases -----------------------------------------------------------------------------------------------------

    fn establish(&mut self) {
        let deadline = now() + self.context.plan.arguments.connect_seconds;
        loop {
            let time = now();
            let complete = self.connections.iter().all(|connection| connection.state == ConnectionState::Up);
            if complete || time >= deadline || self.context.period.start() == CANCELLED {
                return;
            }
            self.open_connections(time);
            self.wait(time, deadline.min(time + RETRY_DELAY / 2));
        }
    }

    /// Wait for the start of the load. Return false if the load was cancelled.
    fn await_start(&mut self) -> bool {
        loop {
            let time = now();
            match self.context.period.start() {
                CANCELLED => return false,
                start if start > 0 && time >= start => return true,
                start => {
                    self.open_connections(time);
                    self.wait(time, if start > 0 { start } else { time + SECOND });
                }
            }
        }
    }

    fn load(&mut self) -> LoadPhase {
        let (start, cpu_before) = (self.context.period.start(), cpu_seconds());
        let plan = Arc::clone(&self.context.plan);
        let (arguments, threads) = (&plan.arguments, plan.arguments.threads);
        self.sending = true;
        self.schedule = arguments
            .rate
            .map(|rate| Schedule::new(arguments.arrivals, rate, start, self.index, threads, arguments.seed));
        if let Some(runner) = &mut self.runner {
            runner.start(start, self.index, threads, arguments.seed);
        }
        self.draw_next_due();
        for i in 0..self.connections.len() as u32 {
            self.refill(i, now());
        }
        let interval = self.timeout_check_interval();
        let mut next_check = start + interval;
        let ended = loop {
            let (time, stop) = (now(), self.context.period.stop());
            self.send_due(time, stop);
            if time >= stop {
                break time;
            }
            if time >= next_check {
                self.check_timeouts(time);
                next_check = time + interval;
            }
            self.open_connections(time);
            let wake = self.next_due.saturating_sub(arguments.spin).max(time);
            let retry = self.next_retry();
            self.wait(time, stop.min(next_check).min(wake).min(retry));
        };
        self.sending = false;
        self.next_due = u64::MAX;
        let Tally { due, received, successes, bytes_in, .. } = self.tally;
        let in_time = LoadCounts { due, received, successes, bytes_in };
        LoadPhase { ended, in_time, cpu_seconds: cpu_seconds() - cpu_before }
    }

    /// Wait for outstanding responses, then for unsolicited responses, and report the results.
    fn drain(mut self, load: LoadPhase, waited: Option<u64>) {
        let began = load.ended;
        let deadline = began + self.context.plan.arguments.drain_seconds;
        let interval = self.timeout_check_interval();
        let mut next_check = began;
        let mut time = began;
        while (self.outstanding > 0 || !self.backlog.is_empty()) && time < deadline {
            if time >= next_check {
                self.check_timeouts(time);
                next_check = time + interval;
            }
            if !self.backlog.is_empty() {
                self.open_connections(time);
            }
            self.wait(time, deadline.min(next_check).min(self.next_retry().max(time + MILLISECOND)));
            time = now();
        }
        self.check_timeouts(time); // count timeouts since the last check
        let drained = time;
        self.close_sessions();
        let unsent = self.backlog.len();
        self.backlog.clear();
        let linger_until = drained + self.context.plan.arguments.linger_seconds;
        while time < linger_until {
            self.wait(time, linger_until);
            time = now();
        }
        self.context.events.send(Event::Drained(Box::new(WorkerResult {
            load,
            tally: self.tally,
            unsent: (unsent + self.backlog.len()) as u64,
            unfinished: self.outstanding as u64,
            drain_time: drained - began,
            run_queue_wait: run_queue_wait().zip(waited).map(|(after, before)| after - before),
            sampler: self.sampler,
            settings: self.settings,
            scenario: self.runner.map(ScenarioRunner::finish),
        })));
    }

    fn timeout_check_interval(&self) -> u64 {
        (self.context.plan.arguments.timeout / 8).clamp(50 * MILLISECOND, SECOND)
    }
}
