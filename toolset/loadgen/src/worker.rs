//! One thread of the load: its connections, its share of the rate, its tallies.

mod connecting;
mod reading;
mod sending;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::Errno;

use crate::arguments::Plan;
use crate::arrivals::{Arrivals, Random};
use crate::clock::{MILLISECOND, SECOND, cpu_seconds, now};
use crate::connection::{Connection, Link};
use crate::course::Course;
use crate::limits::{run_queue_wait, without_timer_slack};
use crate::reports::{CANCELLED, Event, Loaded, Reports, Share, Times};
use crate::response::HeadCache;
use crate::sample::Samples;
use crate::tally::{InTime, Tally};

/// Bytes read at once.
const BUFFER: usize = 256 * 1024;
/// Handshakes under way at once in one thread: more would overflow the server's queue and be repeated a second later.
const HANDSHAKES: usize = 128;
/// Until a refused connection is tried again.
const RETRY: u64 = 100 * MILLISECOND;
/// In place of a time: a connection that was closed idle is opened again when a request waits for one.
const WHEN_NEEDED: u64 = u64::MAX;
/// The name of the wake-up among the connections.
const WAKE: u64 = u64::MAX;

/// A request that is due, but not sent.
#[derive(Clone, Copy, Debug)]
struct Due {
    intended: u64,
    noticed: u64,
    arrival: u32, // of a scenario
}

/// What a worker is given when it is made.
#[derive(Debug)]
pub struct Surroundings {
    pub plan: Arc<Plan>,   // the load
    pub times: Arc<Times>, // when to start and to stop
    pub reports: Reports,  // where to tell what happened
    pub wake: OwnedFd,     // wakes this worker
}

/// One thread of the load.
pub struct Worker {
    index: usize,
    given: Surroundings,
    plan: Arc<Plan>,
    epoll: OwnedFd,
    events: Vec<epoll::Event>,
    buffer: Vec<u8>,
    cache: HeadCache,
    connections: Vec<Connection>,
    free: VecDeque<u32>, // but for a closed loop: connections with room, longest free first
    down: BinaryHeap<Reverse<(u64, u32)>>, // connections to open, by the time of the next try
    handshakes: usize,
    backlog: VecDeque<Due>, // longest due first
    outstanding: usize,
    sending: bool,
    closed: bool,
    depth: usize,
    batch: Vec<u8>, // what a closed loop writes at once
    next_due: u64,
    arrivals: Option<Arrivals>, // of an open loop
    course: Option<Course>,     // of a scenario
    random: Random,
    samples: Samples,
    tally: Tally,
}

impl Worker {
    /// Worker `index` of the plan's threads, from the first connection to the last answer; runs on its own thread.
    pub fn work(index: usize, given: Surroundings) {
        let reports = given.reports.clone();
        match Self::new(index, given) {
            Ok(worker) => worker.run(),
            Err(error) => reports.send(Event::Failed { message: format!("thread {index} cannot be made: {error}") }),
        }
    }

    fn new(index: usize, given: Surroundings) -> Result<Self, Errno> {
        let plan = Arc::clone(&given.plan);
        let asked = &plan.given;
        let share = |worker: usize| asked.connections * worker / asked.threads;
        let connections: Vec<Connection> =
            (share(index)..share(index + 1)).map(|number| Connection::new(number as u32, asked.depth)).collect();
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, &given.wake, EventData::new_u64(WAKE), EventFlags::IN)?;
        let mut down = BinaryHeap::with_capacity(connections.len());
        down.extend((0..connections.len()).map(|i| Reverse((0, i as u32))));
        let written = asked.answers.is_some();
        let drawn = if written && plan.scenario.is_none() { asked.answers_share } else { 0.0 };
        Ok(Self {
            index,
            epoll,
            events: Vec::with_capacity(connections.len().clamp(16, 1024) + 1),
            buffer: vec![0; BUFFER],
            cache: HeadCache::default(),
            free: VecDeque::with_capacity(connections.len()),
            down,
            handshakes: 0,
            backlog: VecDeque::with_capacity(1024),
            outstanding: 0,
            sending: false,
            closed: plan.closed(),
            depth: asked.depth,
            batch: plan.requests.at(0).bytes.repeat(asked.depth),
            next_due: u64::MAX,
            arrivals: None,
            course: plan.scenario.clone().map(|scenario| Course::new(scenario, written)),
            random: Random::new(asked.seed.wrapping_mul(31).wrapping_add(index as u64)),
            samples: Samples::new(drawn, asked.answers_limit / asked.threads, asked.answers_bytes / asked.threads),
            tally: Tally::default(),
            connections,
            given,
            plan,
        })
    }

    /// Connect, wait for the start, make the load, wait for what is under way.
    fn run(mut self) {
        without_timer_slack();
        self.establish();
        let up = self.connections.iter().filter(|connection| connection.link == Link::Up).count();
        self.given.reports.send(Event::Connected { connections: up });
        if self.await_start() {
            let waited = run_queue_wait();
            let load = self.load();
            self.drain(load, waited);
        }
    }

    // ---- phases -----------------------------------------------------------------------------------------------------

    fn establish(&mut self) {
        let deadline = now() + self.plan.given.connect_seconds;
        loop {
            let time = now();
            let complete = self.connections.iter().all(|connection| connection.link == Link::Up);
            if complete || time >= deadline || self.given.times.start() == CANCELLED {
                return;
            }
            self.open_some(time);
            self.wait(time, deadline.min(time + RETRY / 2));
        }
    }

    /// Until the time of the start; false when it is called off.
    fn await_start(&mut self) -> bool {
        loop {
            let time = now();
            match self.given.times.start() {
                CANCELLED => return false,
                start if start > 0 && time >= start => return true,
                start => {
                    self.open_some(time);
                    self.wait(time, if start > 0 { start } else { time + SECOND });
                }
            }
        }
    }

    fn load(&mut self) -> Loaded {
        let (start, used) = (self.given.times.start(), cpu_seconds());
        let plan = Arc::clone(&self.plan);
        let (asked, threads) = (&plan.given, plan.given.threads);
        self.sending = true;
        self.arrivals =
            asked.rate.map(|rate| Arrivals::new(asked.arrivals, rate, start, self.index, threads, asked.seed));
        if let Some(course) = &mut self.course {
            course.start(start, self.index, threads, asked.seed);
        }
        self.draw();
        for i in 0..self.connections.len() as u32 {
            self.refill(i, now());
        }
        let scan = self.scan_every();
        let mut next_scan = start + scan;
        let ended = loop {
            let (time, stop) = (now(), self.given.times.stop());
            self.send_due(time, stop);
            if time >= stop {
                break time;
            }
            if time >= next_scan {
                self.scan(time);
                next_scan = time + scan;
            }
            self.open_some(time);
            let wake = self.next_due.saturating_sub(asked.spin).max(time);
            let retry = self.next_retry();
            self.wait(time, stop.min(next_scan).min(wake).min(retry));
        };
        self.sending = false;
        self.next_due = u64::MAX;
        let Tally { due, received, successes, bytes_in, .. } = self.tally;
        let in_time = InTime { due, received, successes, bytes_in };
        Loaded { ended, in_time, cpu_seconds: cpu_seconds() - used }
    }

    /// Wait for what is under way, and then for what nobody asked for.
    fn drain(mut self, load: Loaded, waited: Option<u64>) {
        let began = load.ended;
        let deadline = began + self.plan.given.drain_seconds;
        let scan = self.scan_every();
        let mut next_scan = began;
        let mut time = began;
        while (self.outstanding > 0 || !self.backlog.is_empty()) && time < deadline {
            if time >= next_scan {
                self.scan(time);
                next_scan = time + scan;
            }
            if !self.backlog.is_empty() {
                self.open_some(time);
            }
            self.wait(time, deadline.min(next_scan).min(self.next_retry().max(time + MILLISECOND)));
            time = now();
        }
        let drained = time;
        let unsent = self.backlog.len();
        self.backlog.clear();
        while time < drained + self.plan.given.linger_seconds {
            self.wait(time, drained + self.plan.given.linger_seconds);
            time = now();
        }
        self.given.reports.send(Event::Drained(Box::new(Share {
            load,
            tally: self.tally,
            unsent: (unsent + self.backlog.len()) as u64,
            unfinished: self.outstanding as u64,
            nanoseconds: drained - began,
            run_queue_wait: run_queue_wait().zip(waited).map(|(after, before)| after - before),
            samples: self.samples,
            scenario: self.course.map(Course::end),
        })));
    }

    fn scan_every(&self) -> u64 {
        (self.plan.given.timeout / 8).clamp(50 * MILLISECOND, SECOND)
    }
}
