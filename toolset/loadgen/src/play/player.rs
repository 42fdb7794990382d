//! One thread of a scenario: its connections, its share of every use case's arrivals, its tally.

mod answering;
mod connecting;
mod sending;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::Errno;

use crate::arguments::Plan;
use crate::arrivals::{Arrivals, Process, Random};
use crate::clock::{MILLISECOND, SECOND, now, timespec};
use crate::connection::{Connection, Link};
use crate::limits::run_queue_wait;
use crate::opening::settle_in;
use crate::play::arrival::{Arrival, Outcome};
use crate::play::tally::Tally;
use crate::reports::{CANCELLED, Reports, Times};
use crate::response::HeadCache;
use crate::scenario::Scenario;

/// Bytes read at once.
const BUFFER: usize = 64 * 1024;
/// Until a refused connection is tried again.
const RETRY: u64 = 100 * MILLISECOND;
/// The name of the wake-up among the connections.
const WAKE: u64 = u64::MAX;

/// What a player tells.
#[derive(Debug)]
pub enum Event {
    /// It could not be made.
    Failed {
        /// Why.
        message: String,
    },
    /// It has done what it could to connect.
    Connected {
        /// Connections that are up.
        connections: usize,
    },
    /// It has sent what was due in the load, and waits for what is under way.
    Stopped,
    /// It has nothing under way any more, or does not wait any longer.
    Ended(Box<Share>),
}

/// What one player did.
#[derive(Debug)]
pub struct Share {
    /// Its counts.
    pub tally: Tally,
    /// Its arrivals, where they are kept.
    pub arrivals: Vec<Arrival>,
    /// For how long it waited after the load, in nanoseconds.
    pub drained: u64,
    /// For how long its thread was ready while another had its CPU; absent where the kernel does not tell.
    pub run_queue_wait: Option<u64>,
}

/// What a player is given when it is made.
#[derive(Debug)]
pub struct Given {
    /// Connections, threads, times.
    pub plan: Arc<Plan>,
    /// What to play.
    pub scenario: Arc<Scenario>,
    /// Common header lines with their ends.
    pub headers: Arc<str>,
    /// Whether arrivals are kept with their answers.
    pub keep: bool,
    /// When to start and to stop.
    pub times: Arc<Times>,
    /// Where to tell what happened.
    pub reports: Reports<Event>,
    /// Wakes this player.
    pub wake: OwnedFd,
}

/// The arrivals of one use case in one player: the same of a seed, whatever the server does.
struct Stream {
    arrivals: Arrivals,
    random: Random, // of their variables
    next: u64,
}

/// One thread of a scenario.
pub struct Player {
    index: usize,
    given: Given,
    epoll: OwnedFd,
    events: Vec<epoll::Event>,
    buffer: Vec<u8>,
    cache: HeadCache,
    connections: Vec<Connection>,
    free: VecDeque<u32>,                   // longest free first
    down: BinaryHeap<Reverse<(u64, u32)>>, // connections to open, by the time of the next try
    streams: Vec<Stream>,                  // by use case
    under_way: Vec<Option<Box<Arrival>>>,
    vacant: Vec<u32>,       // places in `under_way`
    waiting: VecDeque<u32>, // arrivals with a step that is due, longest due first
    request: Vec<u8>,
    body: String,
    tally: Tally,
    ended: Vec<Arrival>,
}

impl Player {
    /// Player `index` of the plan's threads, from the first connection to the last answer; runs on its own thread.
    pub fn work(index: usize, given: Given) {
        let reports = given.reports.clone();
        match Self::new(index, given) {
            Ok(player) => player.run(),
            Err(error) => reports.send(Event::Failed { message: format!("thread {index} cannot be made: {error}") }),
        }
    }

    fn new(index: usize, given: Given) -> Result<Self, Errno> {
        let share = |player: usize| given.plan.connections * player / given.plan.threads;
        let connections: Vec<Connection> =
            (share(index)..share(index + 1)).map(|number| Connection::new(number as u32, 1)).collect();
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, &given.wake, EventData::new_u64(WAKE), EventFlags::IN)?;
        Ok(Self {
            index,
            epoll,
            events: Vec::with_capacity(connections.len().clamp(16, 1024) + 1),
            buffer: vec![0; BUFFER],
            cache: HeadCache::default(),
            free: VecDeque::with_capacity(connections.len()),
            down: (0..connections.len()).map(|i| Reverse((0, i as u32))).collect(),
            connections,
            streams: Vec::new(),
            under_way: Vec::new(),
            vacant: Vec::new(),
            waiting: VecDeque::with_capacity(1024),
            request: Vec::with_capacity(1024),
            body: String::with_capacity(1024),
            tally: Tally::new(&given.scenario),
            ended: Vec::new(),
            given,
        })
    }

    /// Connect, wait for the start, play, wait for what is under way.
    fn run(mut self) {
        settle_in(self.index, &self.given.plan.cpus);
        self.establish();
        let up = self.connections.iter().filter(|connection| connection.link == Link::Up).count();
        self.given.reports.send(Event::Connected { connections: up });
        if self.await_start() {
            let waited_before = run_queue_wait();
            self.play();
            self.given.reports.send(Event::Stopped);
            let drained = self.drain();
            let run_queue_wait = run_queue_wait().zip(waited_before).map(|(after, before)| after - before);
            let share = Share { tally: self.tally, arrivals: self.ended, drained, run_queue_wait };
            self.given.reports.send(Event::Ended(Box::new(share)));
        }
    }

    // ---- phases -----------------------------------------------------------------------------------------------------

    fn establish(&mut self) {
        let deadline = now() + self.given.plan.connect;
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

    fn play(&mut self) {
        self.streams = self.streams_from(self.given.times.start());
        let scan = self.scan_every();
        let mut next_scan = self.given.times.start() + scan;
        let stop = loop {
            let time = now();
            let stop = self.given.times.stop();
            if time >= stop {
                break stop;
            }
            self.arrive(time, stop);
            if time >= next_scan {
                self.scan(time);
                next_scan = time + scan;
            }
            self.open_some(time);
            let wake = self.next_arrival().saturating_sub(self.given.plan.spin).max(time);
            self.wait(time, stop.min(next_scan).min(wake).min(self.next_retry()));
        };
        self.arrive(now().max(stop), stop);
        self.streams.clear();
    }

    /// Let arrivals go on to their end; nanoseconds that it took. What is left then is unfinished.
    fn drain(&mut self) -> u64 {
        let began = now();
        let deadline = began + self.given.plan.drain;
        let scan = self.scan_every();
        let mut next_scan = began;
        let mut time = began;
        while self.vacant.len() < self.under_way.len() && time < deadline {
            if time >= next_scan {
                self.scan(time);
                next_scan = time + scan;
            }
            self.open_some(time);
            self.wait(time, deadline.min(next_scan).min(self.next_retry().max(time + MILLISECOND)));
            time = now();
        }
        for arrival in std::mem::take(&mut self.under_way).into_iter().flatten() {
            self.leave_unfinished(*arrival);
        }
        time - began
    }

    fn scan_every(&self) -> u64 {
        (self.given.plan.timeout / 8).clamp(50 * MILLISECOND, SECOND)
    }

    /// The player's share of every use case: independent streams of one seed.
    fn streams_from(&self, start: u64) -> Vec<Stream> {
        let (plan, cases) = (&self.given.plan, &self.given.scenario.use_cases);
        let made = cases.iter().enumerate().map(|(place, case)| {
            let mut seeds = Random::new(plan.seed ^ (place as u64 + 1).wrapping_mul(0xa076_1d64_78bd_642f));
            let (times, values) = (seeds.bits(), seeds.bits());
            let mut arrivals = Arrivals::new(Process::Poisson, case.rate, start, self.index, plan.threads, times);
            let next = arrivals.draw();
            let random = Random::new(values.wrapping_add((self.index as u64).wrapping_mul(0x8ebc_6af0_9c88_c6e3)));
            Stream { arrivals, random, next }
        });
        made.collect()
    }

    // ---- what comes -------------------------------------------------------------------------------------------------

    /// Sleep until `until` or until something comes, then see to all of it.
    fn wait(&mut self, time: u64, until: u64) {
        self.events.clear();
        let timeout = timespec(until.saturating_sub(time));
        let _ = epoll::wait(&self.epoll, spare_capacity(&mut self.events), Some(&timeout)); // interrupted: no events
        for at in 0..self.events.len() {
            let event = self.events[at];
            let name = { event.data }.u64();
            if name == WAKE {
                let _ = rustix::io::read(&self.given.wake, &mut [0; 8]);
                continue;
            }
            self.handle(name as u32, event.flags);
        }
    }

    fn handle(&mut self, i: u32, flags: EventFlags) {
        match self.connections[i as usize].link {
            Link::Up => {
                if flags.contains(EventFlags::OUT) {
                    self.write_more(i);
                }
                if flags.intersects(EventFlags::IN | EventFlags::HUP | EventFlags::ERR | EventFlags::RDHUP) {
                    self.read(i);
                }
            }
            Link::Connecting => self.connected(i),
            Link::Down => {}
        }
    }

    /// Nobody waits for it any more.
    fn leave_unfinished(&mut self, mut arrival: Arrival) {
        let step = &self.given.scenario.use_cases[arrival.use_case].steps[arrival.step];
        self.tally.operations[step.operation].unfinished += 1;
        self.tally.courses[arrival.use_case].unfinished += 1;
        if arrival.sent {
            arrival.outcomes.push(Outcome::Unfinished);
        }
        self.end(arrival);
    }

    fn end(&mut self, arrival: Arrival) {
        if self.given.keep {
            self.ended.push(arrival);
        }
    }
}
