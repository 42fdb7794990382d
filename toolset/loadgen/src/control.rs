//! The conversation with whoever started the load: ready, go, a line an interval, stop, the results.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use rustix::process::nice;
use serde_json::{Map, Value, json};

use crate::arguments::Plan;
use crate::arrivals::Process;
use crate::clock::{MILLISECOND, SECOND, cpu_seconds, now};
use crate::limits::raise_file_limit;
use crate::lines::{as_map, print, ready, seconds};
use crate::listening::{Listener, Word};
use crate::opening::{self, Told};
use crate::reports::{CANCELLED, Ending, Event, Reports, Times, bell, ring};
use crate::sample::Samples;
use crate::tally::Tally;
use crate::worker::{Surroundings, Worker};

/// From the word `go` to the first request: all workers are awake by then.
pub const LEAD: u64 = 2 * MILLISECOND;
/// Milder than the workers: writing a line must not delay a request.
pub const NICE: i32 = 10;

struct Session {
    plan: Arc<Plan>,
    times: Arc<Times>,
    events: Receiver<Event>,
    listener: Listener,
    wakes: Vec<OwnedFd>,
    spare: Arc<Mutex<Vec<Box<Tally>>>>,
    gone: bool, // somebody said go, or need not
}

/// Run the load to its end. Results go to standard output as JSON lines; an error is one sentence.
pub fn run(plan: Plan) -> Result<Ending, String> {
    let rung = Arc::new(bell()?);
    let listener = Listener::new(Arc::clone(&rung))?;
    raise_file_limit(plan.connections)?;
    let (samples, writer) = match &plan.sample_file {
        Some(path) => {
            let (samples, writer) = Samples::to_file(path, plan.sample_limit, plan.sample_bytes)?;
            (samples, Some(writer))
        }
        None => (Samples::none(), None),
    };
    let (reports, events) = Reports::new(rung);
    let gone = plan.start_at_once;
    let mut session = Session {
        plan: Arc::new(plan),
        times: Arc::default(),
        events,
        listener,
        wakes: Vec::new(),
        spare: Arc::default(),
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
            reports: reports.clone(),
            spare: Arc::clone(&session.spare),
            samples: Arc::clone(&samples),
            wake,
        };
        let thread = std::thread::Builder::new().name(format!("worker {index}"));
        threads.push(thread.spawn(move || Worker::work(index, given)).map_err(|error| error.to_string())?);
    }
    drop((reports, samples));
    let ending = session.converse();
    if !matches!(ending, Ok(Ending::Results)) {
        session.times.stop_at(0); // nobody reads results any more: a load under way ends as well
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

impl Session {
    fn converse(&mut self) -> Result<Ending, String> {
        let Some(up) = self.connections()? else { return Ok(Ending::NotStarted) };
        let complete = self.plan.connect_at_go || up == self.plan.connections;
        print(&ready(complete, up, self.plan.connections, now()))?;
        if !complete {
            return Ok(opening::not_connected(&self.plan, up));
        }
        if !opening::go(&mut self.listener, self.gone)? {
            return Ok(Ending::NotStarted);
        }
        self.measure()
    }

    /// Connections of all workers once each has done what it could; None when it was called off before.
    fn connections(&mut self) -> Result<Option<usize>, String> {
        let told = |event| match event {
            Event::Failed { message } => Told::Failed(message),
            Event::Connected { connections } => Told::Connected(connections),
            Event::Interval { .. } | Event::Drained { .. } => Told::Other,
        };
        opening::connections(self.plan.threads, &self.events, &mut self.listener, &mut self.gone, told)
    }

    fn measure(&mut self) -> Result<Ending, String> {
        let start = now() + LEAD;
        if let Some(duration) = self.plan.duration {
            self.times.stop_at(start + duration);
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
            let asked = drained < self.plan.threads && self.listener.listen(Some(SECOND))? == Some(Word::Stop);
            if asked && self.times.stop_by(now() + MILLISECOND) {
                stopped_by = "asked";
                self.wake_all();
            }
        }
        let stop = self.times.stop();
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
        let stop = self.times.stop();
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
        self.times.start_at(start);
        self.wake_all();
    }

    fn wake_all(&self) {
        for wake in &self.wakes {
            ring(wake);
        }
    }
}
