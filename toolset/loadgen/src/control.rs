//! The protocol between loadgen and the program that started it: ready, go, stop, results.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::Receiver;

use serde_json::{Map, Value, json};

use crate::arguments::Plan;
use crate::arrival::Arrival;
use crate::clock::{MILLISECOND, SECOND, now};
use crate::commands::{Command, CommandListener};
use crate::coordination::{CANCELLED, Event, EventSender, ExitReason, LoadPeriod, WorkerResult, new_eventfd, notify};
use crate::http2::PeerSettings;
use crate::sampling::{self, Sampler};
use crate::schedule::ArrivalProcess;
use crate::system::raise_file_limit;
use crate::tally::{Accumulate, LoadCounts, ScenarioTally, Tally};
use crate::worker::{Worker, WorkerContext};

/// Delay between the go command and the start of the load, in nanoseconds. It lets all workers wake up in time.
const LEAD: u64 = 2 * MILLISECOND;

struct Session {
    plan: Arc<Plan>,
    period: Arc<LoadPeriod>,
    events: Receiver<Event>,
    commands: CommandListener,
    wakes: Vec<OwnedFd>,
    responses: Option<BufWriter<File>>,
    go: bool, // whether the load may start
}

/// Run the load, and print the results as JSON lines. Errors are messages for the user.
pub fn run(plan: Plan) -> Result<ExitReason, String> {
    let wake = Arc::new(new_eventfd()?);
    let commands = CommandListener::new(Arc::clone(&wake))?;
    raise_file_limit(plan.arguments.connections)?;
    let (event_sender, events) = EventSender::new(wake);
    let mut session = Session {
        responses: plan.arguments.responses.file.as_deref().map(sampling::create).transpose()?,
        go: plan.arguments.start_at_once,
        plan: Arc::new(plan),
        period: Arc::default(),
        events,
        commands,
        wakes: Vec::new(),
    };
    let mut threads = Vec::new();
    for index in 0..session.plan.arguments.threads {
        let wake = new_eventfd()?;
        session.wakes.push(wake.try_clone().map_err(|error| error.to_string())?);
        let context = WorkerContext {
            plan: Arc::clone(&session.plan),
            period: Arc::clone(&session.period),
            events: event_sender.clone(),
            wake,
        };
        let thread = std::thread::Builder::new().name(format!("worker {index}"));
        threads.push(thread.spawn(move || Worker::work(index, context)).map_err(|error| error.to_string())?);
    }
    drop(event_sender);
    let reason = session.run();
    if !matches!(reason, Ok(ExitReason::Results)) {
        session.period.stop_by(0); // stop a running load, because the results will not be printed
        session.start_at(CANCELLED);
    }
    for thread in threads {
        thread.join().map_err(|_| "a worker thread panicked; this is a bug in loadgen")?;
    }
    reason
}

impl Session {
    fn run(&mut self) -> Result<ExitReason, String> {
        let Some(up) = self.await_connections()? else { return Ok(ExitReason::NotStarted) };
        let requested = self.plan.arguments.connections;
        print(&json!({
            "kind": "ready",
            "ready": up == requested,
            "connections": up,
            "connections_asked": requested,
            "pid": std::process::id(),
            "now_ns": now(),
        }))?;
        if up < requested {
            let (address, within) =
                (&self.plan.peer.address, self.plan.arguments.connect_seconds as f64 / SECOND as f64);
            eprintln!("loadgen: only {up} of {requested} connections to {address} were established within {within} s");
            return Ok(ExitReason::NotConnected);
        }
        while !self.go {
            match self.commands.wait(None)? {
                Some(Command::Go) => self.go = true,
                Some(Command::Stop | Command::EndOfInput) => return Ok(ExitReason::NotStarted),
                None => {}
            }
        }
        self.measure()
    }

    /// Wait until all threads have connected or given up. Return the number of established connections, or `None` if
    /// the load was cancelled.
    fn await_connections(&mut self) -> Result<Option<usize>, String> {
        let (mut up, mut done) = (0, 0);
        loop {
            while let Ok(event) = self.events.try_recv() {
                match event {
                    Event::Failed { message } => return Err(message),
                    Event::Connected { connections } => {
                        up += connections;
                        done += 1;
                    }
                    Event::Drained(_) => {}
                }
            }
            if done == self.plan.arguments.threads {
                return Ok(Some(up));
            }
            match self.commands.wait(Some(SECOND))? {
                Some(Command::Go) => self.go = true,
                Some(Command::Stop) => return Ok(None),
                Some(Command::EndOfInput) if !self.go => return Ok(None),
                Some(Command::EndOfInput) | None => {}
            }
        }
    }

    fn measure(&mut self) -> Result<ExitReason, String> {
        let start = now() + LEAD;
        if let Some(duration) = self.plan.arguments.duration {
            self.period.stop_by(start + duration);
        }
        self.start_at(start);
        let threads = self.plan.arguments.threads;
        let mut results = Vec::new();
        while results.len() < threads {
            while let Ok(event) = self.events.try_recv() {
                if let Event::Drained(result) = event {
                    results.push(*result);
                }
            }
            if results.len() < threads && self.commands.wait(Some(SECOND))? == Some(Command::Stop) {
                self.period.stop_by(now());
                self.wakes.iter().for_each(notify);
            }
        }
        self.finish(results, start)?;
        Ok(ExitReason::Results)
    }

    /// Write the responses file and print the results.
    fn finish(&mut self, results: Vec<WorkerResult>, start: u64) -> Result<(), String> {
        let plan = Arc::clone(&self.plan);
        let (mut ended, mut in_time, mut tally, mut cpu_seconds) =
            (start, LoadCounts::default(), Tally::default(), 0.0);
        let (mut worker_samplers, mut arrivals) = (Vec::new(), Vec::new());
        let mut settings = PeerSettings::default();
        let mut scenario = plan.scenario.as_deref().map(ScenarioTally::new);
        let (mut unsent, mut unfinished, mut drained, mut waited) = (0, 0, 0, Some(0));
        for result in results {
            ended = ended.max(result.load.ended);
            in_time.add(&result.load.in_time);
            cpu_seconds += result.load.cpu_seconds;
            tally.add(&result.tally);
            unsent += result.unsent;
            unfinished += result.unfinished;
            drained = drained.max(result.drain_time);
            waited = waited.zip(result.run_queue_wait).map(|(sum, this)| sum + this);
            worker_samplers.push(result.sampler);
            settings.merge(&result.settings);
            if let Some((sum, (counts, recorded))) = scenario.as_mut().zip(result.scenario) {
                sum.add(&counts);
                arrivals.extend(recorded);
            }
        }
        let samples = Sampler::merge(worker_samplers);
        arrivals.sort_by_key(|arrival| arrival.started_at);
        let recorded: u64 = arrivals.iter().map(Arrival::response_count).sum();
        if let Some(file) = &mut self.responses {
            let result = sampling::write(file, &samples, &plan.requests).and_then(|()| {
                for (arrival, scenario) in arrivals.iter().zip(plan.scenario.iter().cycle()) {
                    serde_json::to_writer(&mut *file, &arrival.to_json(scenario))?;
                    file.write_all(b"\n")?;
                }
                file.flush()
            });
            result.map_err(|error| format!("--responses: cannot write the file: {error}"))?;
        }
        let line = json!({
            "kind": "total",
            "start_ns": start,
            "end_ns": ended,
            "seconds": seconds(ended - start),
            "in_time": in_time,
            "drain_seconds": seconds(drained),
            "unsent": unsent,
            "unfinished": unfinished,
            "sampled": samples.len() as u64 + recorded,
            "cpu_seconds": cpu_seconds,
            "run_queue_wait_seconds": waited.map(seconds),
            "peer_settings": plan.http2().then(|| settings.to_json()),
        });
        let scenario = scenario.zip(plan.scenario.as_deref()).map(|(tally, scenario)| tally.to_json(scenario));
        print(&merge_objects([json!(tally), describe(&plan), line, scenario.unwrap_or(json!({}))]))
    }

    fn start_at(&self, start: u64) {
        self.period.start_at(start);
        self.wakes.iter().for_each(notify);
    }
}

/// Return the result fields that describe the load.
fn describe(plan: &Plan) -> Value {
    let arguments = &plan.arguments;
    let kind = match (plan.closed_loop(), arguments.rate) {
        (true, _) => "closed",
        (false, Some(_)) => "open",
        (false, None) => "scenario",
    };
    json!({
        "protocol": arguments.protocol.name(),
        "window": plan.http2().then_some(arguments.window),
        "loop": kind,
        "rate": arguments.rate,
        "arrivals": arguments.rate.map(|_| if arguments.arrivals == ArrivalProcess::Poisson { "poisson" } else { "uniform" }),
        "connections": arguments.connections,
        "threads": arguments.threads,
        "depth": arguments.depth,
        "seed": arguments.seed,
        "spin_us": arguments.spin as f64 / 1e3,
        "timeout_seconds": seconds(arguments.timeout),
    })
}

/// Merge JSON objects into a single object.
fn merge_objects<const N: usize>(parts: [Value; N]) -> Value {
    let members = parts.into_iter().filter_map(|part| if let Value::Object(map) = part { Some(map) } else { None });
    members.flatten().collect::<Map<_, _>>().into()
}

/// Convert nanoseconds to seconds.
fn seconds(nanoseconds: u64) -> Value {
    json!(nanoseconds as f64 / SECOND as f64)
}

/// Print a line and flush standard output.
fn print(line: &Value) -> Result<(), String> {
    let mut text = line.to_string();
    text.push('\n');
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(|error| format!("standard output: {error}"))
}
