//! One thread of the load: its connections, its share of the rate, its tallies.

mod connecting;
mod reading;
mod sending;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::Errno;

use crate::arguments::Plan;
use crate::arrivals::{Arrivals, Random};
use crate::clock::{MILLISECOND, SECOND, now};
use crate::connection::{Connection, Link};
use crate::limits::run_queue_wait;
use crate::opening::settle_in;
use crate::reports::{CANCELLED, Event, Reports, Times};
use crate::response::HeadCache;
use crate::sample::Samples;
use crate::tally::Tally;

/// Bytes read at once.
const BUFFER: usize = 256 * 1024;
/// Handshakes under way at once in one thread: more would overflow the server's queue and be repeated a second later.
const HANDSHAKES: usize = 128;
/// Until a refused connection is tried again.
const RETRY: u64 = 100 * MILLISECOND;
/// The name of the wake-up among the connections.
const WAKE: u64 = u64::MAX;

/// A request that is due, but not sent.
#[derive(Clone, Copy, Debug)]
struct Due {
    intended: u64,
    noticed: u64,
}

/// What a worker is given when it is made.
#[derive(Debug)]
pub struct Surroundings {
    /// The load.
    pub plan: Arc<Plan>,
    /// When to start and to stop.
    pub times: Arc<Times>,
    /// Where to tell what happened.
    pub reports: Reports<Event>,
    /// Cleared tallies, to be used again.
    pub spare: Arc<Mutex<Vec<Box<Tally>>>>,
    /// Where drawn responses go.
    pub samples: Arc<Samples>,
    /// Wakes this worker.
    pub wake: OwnedFd,
}

/// One thread of the load.
pub struct Worker {
    index: usize,
    plan: Arc<Plan>,
    times: Arc<Times>,
    reports: Reports<Event>,
    spare: Arc<Mutex<Vec<Box<Tally>>>>,
    samples: Arc<Samples>,
    wake: OwnedFd,
    epoll: OwnedFd,
    events: Vec<epoll::Event>,
    buffer: Vec<u8>,
    cache: HeadCache,
    connections: Vec<Connection>,
    free: VecDeque<u32>,                   // open loop: connections with room, longest free first
    down: BinaryHeap<Reverse<(u64, u32)>>, // connections to open, by the time of the next try
    handshakes: usize,
    backlog: VecDeque<Due>,
    outstanding: usize,
    sending: bool,
    next_due: u64,
    arrivals: Option<Arrivals>,
    random: Random,
    rotation: usize,
    batch: Vec<u8>, // what a closed loop writes at once; rebuilt only where there are several requests
    tally: Box<Tally>,
    waited_before: Option<u64>, // nanoseconds in the run queue before the load
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
        let plan = given.plan;
        let share = |worker: usize| plan.connections * worker / plan.threads;
        let connections: Vec<Connection> =
            (share(index)..share(index + 1)).map(|number| Connection::new(number as u32, plan.depth)).collect();
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, &given.wake, EventData::new_u64(WAKE), EventFlags::IN)?;
        let mut down = BinaryHeap::with_capacity(connections.len());
        down.extend((0..connections.len()).map(|i| Reverse((0, i as u32))));
        Ok(Self {
            index,
            times: given.times,
            reports: given.reports,
            spare: given.spare,
            samples: given.samples,
            wake: given.wake,
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
            next_due: u64::MAX,
            arrivals: None,
            random: Random::new(plan.seed.wrapping_mul(31).wrapping_add(index as u64)),
            rotation: index,
            batch: if plan.requests.len() == 1 { plan.requests[0].bytes.repeat(plan.depth) } else { Vec::new() },
            tally: Box::default(),
            waited_before: None,
            connections,
            plan,
        })
    }

    /// Connect, wait for the start, make the load, wait for what is under way.
    fn run(mut self) {
        settle_in(self.index, &self.plan.cpus);
        if !self.plan.connect_at_go {
            self.establish();
        }
        let up = self.connections.iter().filter(|connection| connection.link == Link::Up).count();
        self.reports.send(Event::Connected { connections: up });
        if self.await_start() {
            self.load();
            self.drain();
        }
    }

    // ---- phases -----------------------------------------------------------------------------------------------------

    fn establish(&mut self) {
        let deadline = now() + self.plan.connect;
        loop {
            let time = now();
            if time >= deadline || self.connections.iter().all(|connection| connection.link == Link::Up) {
                return;
            }
            if self.times.start() == CANCELLED {
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
            match self.times.start() {
                CANCELLED => return false,
                start if start > 0 && time >= start => return true,
                start => {
                    if !self.plan.connect_at_go {
                        self.open_some(time);
                    }
                    let until = if start > 0 { start } else { time + SECOND };
                    self.wait(time, until);
                }
            }
        }
    }

    fn load(&mut self) {
        let start = self.times.start();
        let plan = Arc::clone(&self.plan);
        self.sending = true;
        self.waited_before = run_queue_wait();
        if let Some(rate) = plan.rate {
            let mut arrivals = Arrivals::new(plan.arrivals, rate, start, self.index, plan.threads, plan.seed);
            self.next_due = arrivals.draw();
            self.arrivals = Some(arrivals);
        }
        for i in 0..self.connections.len() as u32 {
            self.refill(i, now());
        }
        let scan = (plan.timeout / 8).clamp(50 * MILLISECOND, SECOND);
        let mut next_scan = start + scan;
        let mut cuts = 0;
        let stop = loop {
            let time = now();
            let stop = self.times.stop(); // after the clock: a cut never lies behind the stop
            if time >= stop {
                break stop;
            }
            self.send_due(time, stop);
            if time >= start + (cuts + 1) * plan.interval {
                self.cut(cuts);
                cuts += 1;
                continue;
            }
            if time >= next_scan {
                self.scan(time);
                next_scan = time + scan;
            }
            self.open_some(time);
            let wake = self.next_due.saturating_sub(plan.spin).max(time);
            let retry = self.next_retry();
            self.wait(time, stop.min(start + (cuts + 1) * plan.interval).min(next_scan).min(wake).min(retry));
        };
        self.send_due(now().max(stop), stop);
        self.sending = false;
        self.next_due = u64::MAX;
        while start + cuts * plan.interval < stop {
            self.cut(cuts);
            cuts += 1;
        }
    }

    fn drain(&mut self) {
        let began = now();
        let deadline = began + self.plan.drain;
        let scan = (self.plan.timeout / 8).clamp(50 * MILLISECOND, SECOND);
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
        let unsent = self.backlog.len() as u64;
        self.backlog.clear();
        while time < drained + self.plan.linger {
            self.wait(time, drained + self.plan.linger);
            time = now();
        }
        let (tally, unfinished) = (std::mem::take(&mut self.tally), self.outstanding as u64);
        let waited = run_queue_wait().zip(self.waited_before).map(|(after, before)| after - before);
        let nanoseconds = drained - began;
        self.reports.send(Event::Drained { tally, unsent, unfinished, nanoseconds, run_queue_wait: waited });
    }

    /// Hand this interval over and begin the next.
    fn cut(&mut self, index: u64) {
        let empty = self.spare.lock().ok().and_then(|mut spare| spare.pop()).unwrap_or_default();
        let tally = std::mem::replace(&mut self.tally, empty);
        self.reports.send(Event::Interval { index, tally });
    }
}
