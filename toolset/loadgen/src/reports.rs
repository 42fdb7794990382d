//! What workers and whoever controls them tell each other: when to start and stop, what happened, how it ended.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

use rustix::event::{EventfdFlags, eventfd};

use crate::arrival::Arrival;
use crate::sample::Samples;
use crate::tally::{InTime, ScenarioTally, Tally};

/// In place of a start: there will be none.
pub const CANCELLED: u64 = u64::MAX;

/// How a load ended; the exit status of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Ending {
    Results = 0,      // with results
    Failed = 1,       // something could not be written or started
    NotStarted = 3,   // nobody said go
    NotConnected = 4, // not all connections could be established
}

/// When the workers start and stop, in nanoseconds of the monotonic clock.
#[derive(Debug)]
pub struct Times {
    start: AtomicU64, // 0: not known yet
    stop: AtomicU64,
}

impl Default for Times {
    fn default() -> Self {
        Self { start: AtomicU64::new(0), stop: AtomicU64::new(u64::MAX) }
    }
}

impl Times {
    /// The start, 0 while it is not known, or `CANCELLED`.
    pub fn start(&self) -> u64 {
        self.start.load(Ordering::Acquire)
    }

    /// The end of the load.
    pub fn stop(&self) -> u64 {
        self.stop.load(Ordering::Acquire)
    }

    /// Let the load start then.
    pub fn start_at(&self, start: u64) {
        self.start.store(start, Ordering::Release);
    }

    /// Let it end then unless it ends before.
    pub fn stop_by(&self, stop: u64) {
        self.stop.fetch_min(stop, Ordering::AcqRel);
    }
}

/// What a worker tells.
#[derive(Debug)]
pub enum Event {
    /// It could not be made.
    Failed { message: String },
    /// It has done what it could to connect.
    Connected { connections: usize },
    /// It has waited for what was under way.
    Drained(Box<Share>),
}

/// One worker's load when it was over.
#[derive(Debug)]
pub struct Loaded {
    pub ended: u64, // not before the time of the stop
    pub in_time: InTime,
    pub cpu_seconds: f64,
}

/// What one worker did, and what it kept of it.
#[derive(Debug)]
pub struct Share {
    pub load: Loaded,
    pub tally: Tally,     // with what was counted after the load
    pub unsent: u64,      // requests that were due and never sent
    pub unfinished: u64,  // requests without an answer
    pub nanoseconds: u64, // for how long it waited
    /// For how long its thread was ready while another had its CPU; absent where the kernel does not tell.
    pub run_queue_wait: Option<u64>,
    pub samples: Samples, // answers to be written out
    /// Of a scenario: its counts, and its arrivals where they are kept.
    pub scenario: Option<(ScenarioTally, Vec<Arrival>)>,
}

/// A worker's way to tell what happened.
#[derive(Clone, Debug)]
pub struct Reports {
    sender: Sender<Event>,
    bell: Arc<OwnedFd>,
}

impl Reports {
    /// What is told rings `bell` and comes out of the receiver.
    pub fn new(bell: Arc<OwnedFd>) -> (Self, Receiver<Event>) {
        let (sender, events) = channel();
        (Self { sender, bell }, events)
    }

    /// Tell it; nobody listens any more when the program ends.
    pub fn send(&self, event: Event) {
        if self.sender.send(event).is_ok() {
            ring(&self.bell);
        }
    }
}

/// Something that a thread can wait for together with its sockets.
pub fn bell() -> Result<OwnedFd, String> {
    eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC).map_err(|error| error.to_string())
}

/// Wake whoever waits for this bell.
pub fn ring(bell: &OwnedFd) {
    let _ = rustix::io::write(bell, &1u64.to_ne_bytes()); // refused only when it rings already
}
