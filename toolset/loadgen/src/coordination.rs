//! Coordination of the main thread and the workers: start and stop times, events, results.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

use rustix::event::{EventfdFlags, eventfd};

use crate::arrival::Arrival;
use crate::http2::PeerSettings;
use crate::sampling::Sampler;
use crate::tally::{LoadCounts, ScenarioTally, Tally};

/// Start time that marks a cancelled load.
pub const CANCELLED: u64 = u64::MAX;

/// The reason why a load ended. The discriminant is the program's exit status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ExitReason {
    Results = 0,      // results were printed
    Failed = 1,       // a file or thread could not be created, or output could not be written
    NotStarted = 3,   // stopped before the start command
    NotConnected = 4, // fewer connections than requested
}

/// Start and stop times of the load, shared by all threads, in nanoseconds on the monotonic clock.
#[derive(Debug)]
pub struct LoadPeriod {
    start: AtomicU64, // 0 while unknown
    stop: AtomicU64,
}

impl Default for LoadPeriod {
    fn default() -> Self {
        Self { start: AtomicU64::new(0), stop: AtomicU64::new(u64::MAX) }
    }
}

impl LoadPeriod {
    /// Return the start time, 0 while it is unknown, or `CANCELLED`.
    pub fn start(&self) -> u64 {
        self.start.load(Ordering::Acquire)
    }

    /// Return the stop time.
    pub fn stop(&self) -> u64 {
        self.stop.load(Ordering::Acquire)
    }

    /// Set the start time.
    pub fn start_at(&self, start: u64) {
        self.start.store(start, Ordering::Release);
    }

    /// Stop the load at `stop` unless it stops earlier.
    pub fn stop_by(&self, stop: u64) {
        self.stop.fetch_min(stop, Ordering::AcqRel);
    }
}

/// An event that a worker sends to the main thread.
#[derive(Debug)]
pub enum Event {
    /// The worker could not be created.
    Failed { message: String },
    /// All connections are up, or the time limit for connecting has expired.
    Connected { connections: usize },
    /// The load has ended, and outstanding responses have arrived or timed out.
    Drained(Box<WorkerResult>),
}

/// State of a worker at the end of the load, before the drain.
#[derive(Debug)]
pub struct LoadPhase {
    pub ended: u64, // time at which the worker stopped sending, at or after the stop time
    pub in_time: LoadCounts,
    pub cpu_seconds: f64,
}

/// Counts and sampled responses of a worker.
#[derive(Debug)]
pub struct WorkerResult {
    pub load: LoadPhase,
    pub tally: Tally,    // counts of the load and the drain
    pub unsent: u64,     // due requests that were never sent
    pub unfinished: u64, // requests still without a response at the end of the drain
    pub drain_time: u64, // duration of the drain, in nanoseconds
    /// Nanoseconds for which the thread was runnable but not running; `None` if the kernel does not report it.
    pub run_queue_wait: Option<u64>,
    pub sampler: Sampler,
    pub settings: PeerSettings, // HTTP/2: lowest value of each server setting over all connections
    /// Scenario only: the counts, and the arrivals if responses are recorded.
    pub scenario: Option<(ScenarioTally, Vec<Arrival>)>,
}

/// A worker's channel to the main thread.
#[derive(Clone, Debug)]
pub struct EventSender {
    sender: Sender<Event>,
    wake: Arc<OwnedFd>,
}

impl EventSender {
    /// Create a channel; each event also signals `wake`.
    pub fn new(wake: Arc<OwnedFd>) -> (Self, Receiver<Event>) {
        let (sender, events) = channel();
        (Self { sender, wake }, events)
    }

    /// Send an event. The event is dropped if the main thread no longer receives events.
    pub fn send(&self, event: Event) {
        if self.sender.send(event).is_ok() {
            notify(&self.wake);
        }
    }
}

/// Create an eventfd, which a thread can poll together with sockets.
pub fn new_eventfd() -> Result<OwnedFd, String> {
    eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC).map_err(|error| error.to_string())
}

/// Wake the thread that polls this eventfd.
pub fn notify(eventfd: &OwnedFd) {
    let _ = rustix::io::write(eventfd, &1u64.to_ne_bytes()); // fails only if the eventfd is already signalled
}
