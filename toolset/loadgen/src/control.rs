//! The conversation with whoever started the load: ready, go, a line an interval, stop, the results.

mod listening;

use std::collections::BTreeMap;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use rustix::event::{EventfdFlags, eventfd};
use rustix::process::{Resource, Rlimit, getrlimit, nice, setrlimit};
use serde_json::{Map, Value, json};
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::arguments::Plan;
use crate::arrivals::Process;
use crate::clock::{MILLISECOND, SECOND, cpu_seconds, now};
use crate::sample::Samples;
use crate::tally::Tally;
use crate::worker::{Surroundings, Worker};

/// In place of a start: there will be none.
pub const CANCELLED: u64 = u64::MAX;
/// From the word `go` to the first request: all workers are awake by then.
const LEAD: u64 = 2 * MILLISECOND;
/// Files that a process holds beside its connections.
const OTHER_FILES: u64 = 64;
/// The longest line that is read from standard input, in bytes.
const LINE_LIMIT: usize = 4096;
/// Milder than the workers: writing a line must not delay a request.
const NICE: i32 = 10;

/// How a load ended; the exit status of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Ending {
    /// With results.
    Results = 0,
    /// Something could not be written or started.
    Failed = 1,
    /// Nobody said go.
    NotStarted = 3,
    /// Not all connections could be established.
    NotConnected = 4,
}

/// When the workers start and stop, in nanoseconds of the monotonic clock.
#[derive(Debug)]
pub struct Times {
    start: AtomicU64, // 0: not known yet
    /// The end of the load.
    pub stop: AtomicU64,
}

impl Times {
    /// The start, 0 while it is not known, or `CANCELLED`.
    pub fn start(&self) -> u64 {
        self.start.load(Ordering::Acquire)
    }
}

/// What a worker tells.
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
    /// An interval is over.
    Interval {
        /// Which, from 0.
        index: u64,
        /// What was counted in it.
        tally: Box<Tally>,
    },
    /// It has waited for what was under way.
    Drained {
        /// What was counted after the load.
        tally: Box<Tally>,
        /// Requests that were due and never sent.
        unsent: u64,
        /// Requests without an answer.
        unfinished: u64,
        /// For how long it waited.
        nanoseconds: u64,
        /// For how long its thread was ready while another had its CPU; absent where the kernel does not tell.
        run_queue_wait: Option<u64>,
    },
}

/// A worker's way to tell it.
#[derive(Clone, Debug)]
pub struct Reports {
    sender: Sender<Event>,
    bell: Arc<OwnedFd>,
}

impl Reports {
    /// Tell it; nobody listens any more when the program ends.
    pub fn send(&self, event: Event) {
        if self.sender.send(event).is_ok() {
            ring(&self.bell);
        }
    }
}

fn ring(bell: &OwnedFd) {
    let _ = rustix::io::write(bell, &1u64.to_ne_bytes()); // refused only when it rings already
}

/// What the person or program outside said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Word {
    Go,
    Stop,
    End, // of standard input
}

struct Session {
    plan: Arc<Plan>,
    times: Arc<Times>,
    events: Receiver<Event>,
    bell: Arc<OwnedFd>,
    wakes: Vec<OwnedFd>,
    spare: Arc<Mutex<Vec<Box<Tally>>>>,
    signals: UnixStream,
    typed: Vec<u8>,
    listening: bool, // to standard input
    gone: bool,      // somebody said go, or need not
}

/// Run the load to its end. Results go to standard output as JSON lines; an error is one sentence.
pub fn run(plan: Plan) -> Result<Ending, String> {
    let (signals, heard) = UnixStream::pair().map_err(|error| error.to_string())?;
    signals.set_nonblocking(true).map_err(|error| error.to_string())?;
    for signal in [SIGINT, SIGTERM] {
        let end = heard.try_clone().map_err(|error| error.to_string())?;
        signal_hook::low_level::pipe::register(signal, end).map_err(|error| error.to_string())?;
    }
    raise_file_limit(plan.connections as u64 + OTHER_FILES)?;
    let (samples, writer) = match &plan.sample_file {
        Some(path) => {
            let (samples, writer) = Samples::to_file(path, plan.sample_limit)?;
            (samples, Some(writer))
        }
        None => (Samples::none(), None),
    };
    let bell = || eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC).map_err(|error| error.to_string());
    let (sender, events) = channel();
    let gone = plan.start_at_once;
    let mut session = Session {
        plan: Arc::new(plan),
        times: Arc::new(Times { start: AtomicU64::new(0), stop: AtomicU64::new(u64::MAX) }),
        events,
        bell: Arc::new(bell()?),
        wakes: Vec::new(),
        spare: Arc::default(),
        signals,
        typed: Vec::new(),
        listening: true,
        gone,
    };
    let samples = Arc::new(samples);
    let mut threads = Vec::new();
    for index in 0..session.plan.threads {
        let wake = bell()?;
        session.wakes.push(wake.try_clone().map_err(|error| error.to_string())?);
        let given = Surroundings {
            plan: Arc::clone(&session.plan),
            times: Arc::clone(&session.times),
            reports: Reports { sender: sender.clone(), bell: Arc::clone(&session.bell) },
            spare: Arc::clone(&session.spare),
            samples: Arc::clone(&samples),
            wake,
        };
        let thread = std::thread::Builder::new().name(format!("worker {index}"));
        threads.push(thread.spawn(move || Worker::work(index, given)).map_err(|error| error.to_string())?);
    }
    drop((sender, samples));
    let ending = session.converse();
    if !matches!(ending, Ok(Ending::Results)) {
        session.times.stop.store(0, Ordering::Release); // nobody reads results any more: a load under way ends as well
        session.start_at(CANCELLED);
    }
    finish(threads, writer)?;
    ending
}

fn finish(threads: Vec<JoinHandle<()>>, writer: Option<JoinHandle<Result<(), String>>>) -> Result<(), String> {
    for thread in threads {
        thread.join().map_err(|_| "a worker ended in a panic")?;
    }
    writer.map_or(Ok(()), |writer| writer.join().map_err(|_| "the writer of samples ended in a panic".to_owned())?)
}

/// As many files as the connections need; the hard limit is the machine's.
fn raise_file_limit(needed: u64) -> Result<(), String> {
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= needed) {
        return Ok(());
    }
    if limit.maximum.is_some_and(|maximum| maximum < needed) {
        let maximum = limit.maximum.unwrap_or_default();
        return Err(format!("{needed} files are needed, the hard limit is {maximum}: raise it (ulimit -Hn {needed})"));
    }
    setrlimit(Resource::Nofile, Rlimit { current: Some(needed), maximum: limit.maximum })
        .map_err(|error| error.to_string())
}

impl Session {
    fn converse(&mut self) -> Result<Ending, String> {
        let Some(up) = self.connections()? else { return Ok(Ending::NotStarted) };
        let complete = self.plan.connect_at_go || up == self.plan.connections;
        print(&json!({
            "kind": "ready",
            "ready": complete,
            "connections": up,
            "connections_asked": self.plan.connections,
            "pid": std::process::id(),
            "now_ns": now(),
        }))?;
        if !complete {
            eprintln!(
                "loadgen: {up} of {} connections to {} were established within {} s",
                self.plan.connections,
                self.plan.address,
                self.plan.connect as f64 / SECOND as f64
            );
            return Ok(Ending::NotConnected);
        }
        while !self.gone {
            match self.listen(None)? {
                Some(Word::Go) => self.gone = true,
                Some(Word::Stop | Word::End) => return Ok(Ending::NotStarted),
                None => {}
            }
        }
        self.measure()
    }

    /// Connections of all workers once each has done what it could; None when it was called off before.
    fn connections(&mut self) -> Result<Option<usize>, String> {
        let (mut up, mut workers) = (0, 0);
        loop {
            while let Ok(event) = self.events.try_recv() {
                match event {
                    Event::Failed { message } => return Err(message),
                    Event::Connected { connections } => {
                        up += connections;
                        workers += 1;
                    }
                    Event::Interval { .. } | Event::Drained { .. } => {}
                }
            }
            if workers == self.plan.threads {
                return Ok(Some(up));
            }
            match self.listen(Some(SECOND))? {
                Some(Word::Go) => self.gone = true,
                Some(Word::Stop) => return Ok(None),
                Some(Word::End) if !self.gone => return Ok(None),
                Some(Word::End) | None => {}
            }
        }
    }

    fn measure(&mut self) -> Result<Ending, String> {
        let start = now() + LEAD;
        if let Some(duration) = self.plan.duration {
            self.times.stop.store(start + duration, Ordering::Release);
        }
        let cpu_before = cpu_seconds();
        let mut cpu_at_cut = cpu_before;
        self.start_at(start);
        let _ = nice(NICE);
        let mut stopped_by = "duration";
        let mut load = Tally::default();
        let mut after = Tally::default();
        let (mut unsent, mut unfinished, mut draining, mut drained) = (0, 0, 0, 0);
        let mut waited = Some(0);
        let mut pending: BTreeMap<u64, (usize, Box<Tally>)> = BTreeMap::new();
        let mut cpu_seconds_of_load = None;
        while drained < self.plan.threads {
            while let Ok(event) = self.events.try_recv() {
                match event {
                    Event::Connected { .. } | Event::Failed { .. } => {}
                    Event::Interval { index, tally } => {
                        let Some(tally) = self.merge(&mut pending, index, tally) else { continue };
                        let cpu = cpu_seconds();
                        self.print_interval(index, start, &tally, cpu - cpu_at_cut)?;
                        cpu_at_cut = cpu;
                        cpu_seconds_of_load = Some(cpu - cpu_before);
                        load.add_after(&tally);
                        self.give_back(tally);
                    }
                    Event::Drained { tally, unsent: due, unfinished: open, nanoseconds, run_queue_wait } => {
                        waited = waited.zip(run_queue_wait).map(|(sum, this)| sum + this);
                        after.add_beside(&tally);
                        unsent += due;
                        unfinished += open;
                        draining = draining.max(nanoseconds);
                        drained += 1;
                    }
                }
            }
            if drained < self.plan.threads && self.listen(Some(SECOND))? == Some(Word::Stop) {
                let stop = now() + MILLISECOND;
                if self.times.stop.fetch_min(stop, Ordering::AcqRel) > stop {
                    stopped_by = "asked";
                    self.wake_all();
                }
            }
        }
        let stop = self.times.stop.load(Ordering::Acquire);
        let mut line = load.json();
        let in_time =
            json!({"received": line["received"], "successes": line["successes"], "bytes_in": line["bytes_in"]});
        if after.counters.received > 0 || unfinished > 0 || unsent > 0 || after.counters.unasked_bytes > 0 {
            let mut drain = after.json();
            drain.insert("kind".into(), json!("drain"));
            drain.insert("seconds".into(), seconds(draining));
            print(&drain.into())?;
        }
        load.add_after(&after);
        line = load.json();
        self.describe(&mut line);
        line.extend(as_map(json!({
            "kind": "total",
            "start_ns": start,
            "end_ns": stop,
            "seconds": seconds(stop.saturating_sub(start)),
            "stopped_by": stopped_by,
            "in_time": in_time,
            "drain_seconds": seconds(draining),
            "unsent": unsent,
            "unfinished": unfinished,
            "cpu_seconds": cpu_seconds_of_load.unwrap_or_else(|| cpu_seconds() - cpu_before),
            "run_queue_wait_seconds": waited.map(seconds),
        })));
        print(&line.into())?;
        Ok(Ending::Results)
    }

    /// Put the workers' tallies of an interval together; the sum once all have come.
    fn merge(
        &self,
        pending: &mut BTreeMap<u64, (usize, Box<Tally>)>,
        index: u64,
        tally: Box<Tally>,
    ) -> Option<Box<Tally>> {
        match pending.get_mut(&index) {
            None => {
                pending.insert(index, (1, tally));
            }
            Some((workers, sum)) => {
                sum.add_beside(&tally);
                *workers += 1;
                self.give_back(tally);
            }
        }
        (pending.get(&index)?.0 == self.plan.threads).then(|| pending.remove(&index).map(|(_, sum)| sum))?
    }

    fn give_back(&self, mut tally: Box<Tally>) {
        tally.clear();
        if let Ok(mut spare) = self.spare.lock() {
            spare.push(tally);
        }
    }

    fn print_interval(&self, index: u64, start: u64, tally: &Tally, cpu: f64) -> Result<(), String> {
        let stop = self.times.stop.load(Ordering::Acquire);
        let begin = start + index * self.plan.interval;
        let end = (begin + self.plan.interval).min(stop);
        let mut line = tally.json();
        line.extend(as_map(json!({
            "kind": "interval",
            "index": index,
            "start_ns": begin,
            "end_ns": end,
            "seconds": seconds(end.saturating_sub(begin)),
            "cpu_seconds": cpu,
        })));
        print(&line.into())
    }

    fn describe(&self, line: &mut Map<String, Value>) {
        let plan = &self.plan;
        let arrivals = if plan.arrivals == Process::Poisson { "poisson" } else { "uniform" };
        line.extend(as_map(json!({
            "loop": if plan.rate.is_some() { "open" } else { "closed" },
            "rate": plan.rate,
            "arrivals": plan.rate.map(|_| arrivals),
            "connections": plan.connections,
            "threads": plan.threads,
            "depth": plan.depth,
            "seed": plan.seed,
            "spin_us": plan.spin as f64 / 1e3,
            "timeout_seconds": seconds(plan.timeout),
        })));
    }

    fn start_at(&self, start: u64) {
        self.times.start.store(start, Ordering::Release);
        self.wake_all();
    }

    fn wake_all(&self) {
        for wake in &self.wakes {
            ring(wake);
        }
    }
}

fn as_map(value: Value) -> Map<String, Value> {
    if let Value::Object(map) = value { map } else { Map::new() }
}

fn seconds(nanoseconds: u64) -> Value {
    json!(nanoseconds as f64 / SECOND as f64)
}

fn print(line: &Value) -> Result<(), String> {
    let mut text = line.to_string();
    text.push('\n');
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(|error| format!("standard output: {error}"))
}
