//! The conversation with whoever started the load: ready, go, stop, the results.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::Receiver;

use serde_json::{Map, Value, json};

use crate::arguments::Plan;
use crate::arrival::Arrival;
use crate::arrivals::Process;
use crate::clock::{MILLISECOND, SECOND, now};
use crate::limits::raise_file_limit;
use crate::listening::{Listener, Word};
use crate::reports::{CANCELLED, Ending, Event, Reports, Share, Times, bell, ring};
use crate::sample::{self, Samples};
use crate::tally::{InTime, ScenarioTally, Sum, Tally};
use crate::worker::{Surroundings, Worker};

/// From the word `go` to the first request: all workers are awake by then.
const LEAD: u64 = 2 * MILLISECOND;

struct Session {
    plan: Arc<Plan>,
    times: Arc<Times>,
    events: Receiver<Event>,
    listener: Listener,
    wakes: Vec<OwnedFd>,
    answers: Option<BufWriter<File>>,
    gone: bool, // somebody said go, or need not
}

/// Run the load to its end. Results go to standard output as JSON lines; an error is one sentence.
pub fn run(plan: Plan) -> Result<Ending, String> {
    let rung = Arc::new(bell()?);
    let listener = Listener::new(Arc::clone(&rung))?;
    raise_file_limit(plan.given.connections)?;
    let (reports, events) = Reports::new(rung);
    let mut session = Session {
        answers: plan.given.answers.as_deref().map(sample::create).transpose()?,
        gone: plan.given.start_at_once,
        plan: Arc::new(plan),
        times: Arc::default(),
        events,
        listener,
        wakes: Vec::new(),
    };
    let mut threads = Vec::new();
    for index in 0..session.plan.given.threads {
        let wake = bell()?;
        session.wakes.push(wake.try_clone().map_err(|error| error.to_string())?);
        let given = Surroundings {
            plan: Arc::clone(&session.plan),
            times: Arc::clone(&session.times),
            reports: reports.clone(),
            wake,
        };
        let thread = std::thread::Builder::new().name(format!("worker {index}"));
        threads.push(thread.spawn(move || Worker::work(index, given)).map_err(|error| error.to_string())?);
    }
    drop(reports);
    let ending = session.converse();
    if !matches!(ending, Ok(Ending::Results)) {
        session.times.stop_by(0); // nobody reads results any more: a load under way ends as well
        session.start_at(CANCELLED);
    }
    for thread in threads {
        thread.join().map_err(|_| "a worker ended in a panic")?;
    }
    ending
}

impl Session {
    fn converse(&mut self) -> Result<Ending, String> {
        let Some(up) = self.connections()? else { return Ok(Ending::NotStarted) };
        let asked = self.plan.given.connections;
        print(&json!({
            "kind": "ready",
            "ready": up == asked,
            "connections": up,
            "connections_asked": asked,
            "pid": std::process::id(),
            "now_ns": now(),
        }))?;
        if up < asked {
            let (address, within) = (self.plan.address, self.plan.given.connect_seconds as f64 / SECOND as f64);
            eprintln!("loadgen: {up} of {asked} connections to {address} were established within {within} s");
            return Ok(Ending::NotConnected);
        }
        while !self.gone {
            match self.listener.listen(None)? {
                Some(Word::Go) => self.gone = true,
                Some(Word::Stop | Word::End) => return Ok(Ending::NotStarted),
                None => {}
            }
        }
        self.measure()
    }

    /// Connections of all workers once each has done what it could; None when it was called off before.
    fn connections(&mut self) -> Result<Option<usize>, String> {
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
            if done == self.plan.given.threads {
                return Ok(Some(up));
            }
            match self.listener.listen(Some(SECOND))? {
                Some(Word::Go) => self.gone = true,
                Some(Word::Stop) => return Ok(None),
                Some(Word::End) if !self.gone => return Ok(None),
                Some(Word::End) | None => {}
            }
        }
    }

    fn measure(&mut self) -> Result<Ending, String> {
        let start = now() + LEAD;
        if let Some(duration) = self.plan.given.duration {
            self.times.stop_by(start + duration);
        }
        self.start_at(start);
        let threads = self.plan.given.threads;
        let mut shares = Vec::new();
        while shares.len() < threads {
            while let Ok(event) = self.events.try_recv() {
                if let Event::Drained(share) = event {
                    shares.push(*share);
                }
            }
            if shares.len() < threads && self.listener.listen(Some(SECOND))? == Some(Word::Stop) {
                self.times.stop_by(now());
                self.wakes.iter().for_each(ring);
            }
        }
        self.end(shares, start)?;
        Ok(Ending::Results)
    }

    /// The answers to their file, and the last line.
    fn end(&mut self, shares: Vec<Share>, start: u64) -> Result<(), String> {
        let plan = Arc::clone(&self.plan);
        let (mut ended, mut in_time, mut tally, mut cpu) = (start, InTime::default(), Tally::default(), 0.0);
        let (mut samples, mut arrivals) = (Vec::new(), Vec::new());
        let mut scenario = plan.scenario.as_deref().map(ScenarioTally::new);
        let (mut unsent, mut unfinished, mut drained, mut waited) = (0, 0, 0, Some(0));
        for share in shares {
            ended = ended.max(share.load.ended);
            in_time.add(&share.load.in_time);
            cpu += share.load.cpu_seconds;
            tally.add(&share.tally);
            unsent += share.unsent;
            unfinished += share.unfinished;
            drained = drained.max(share.nanoseconds);
            waited = waited.zip(share.run_queue_wait).map(|(sum, this)| sum + this);
            samples.push(share.samples);
            if let Some((sum, (counts, kept))) = scenario.as_mut().zip(share.scenario) {
                sum.add(&counts);
                arrivals.extend(kept);
            }
        }
        let samples = Samples::together(samples);
        arrivals.sort_by_key(|arrival| arrival.came);
        let answers: u64 = arrivals.iter().map(Arrival::answers).sum();
        if let Some(file) = &mut self.answers {
            let written = sample::write(file, &samples, &plan.requests).and_then(|()| {
                for arrival in plan.scenario.iter().flat_map(|scenario| arrivals.iter().map(|one| one.line(scenario))) {
                    serde_json::to_writer(&mut *file, &arrival)?;
                    file.write_all(b"\n")?;
                }
                file.flush()
            });
            written.map_err(|error| format!("--answers: {error}"))?;
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
            "sampled": samples.len() as u64 + answers,
            "cpu_seconds": cpu,
            "run_queue_wait_seconds": waited.map(seconds),
        });
        let scenario = scenario.zip(plan.scenario.as_deref()).map(|(tally, scenario)| tally.json(scenario));
        print(&joined([json!(tally), described(&plan), line, scenario.unwrap_or(json!({}))]))
    }

    fn start_at(&self, start: u64) {
        self.times.start_at(start);
        self.wakes.iter().for_each(ring);
    }
}

/// What was asked for.
fn described(plan: &Plan) -> Value {
    let given = &plan.given;
    let kind = match (plan.closed(), given.rate) {
        (true, _) => "closed",
        (false, Some(_)) => "open",
        (false, None) => "scenario",
    };
    json!({
        "loop": kind,
        "rate": given.rate,
        "arrivals": given.rate.map(|_| if given.arrivals == Process::Poisson { "poisson" } else { "uniform" }),
        "connections": given.connections,
        "threads": given.threads,
        "depth": given.depth,
        "seed": given.seed,
        "spin_us": given.spin as f64 / 1e3,
        "timeout_seconds": seconds(given.timeout),
    })
}

/// Objects as one.
fn joined<const N: usize>(parts: [Value; N]) -> Value {
    let members = parts.into_iter().filter_map(|part| if let Value::Object(map) = part { Some(map) } else { None });
    members.flatten().collect::<Map<_, _>>().into()
}

/// Nanoseconds in seconds.
fn seconds(nanoseconds: u64) -> Value {
    json!(nanoseconds as f64 / SECOND as f64)
}

/// Print one line and hand it over at once.
fn print(line: &Value) -> Result<(), String> {
    let mut text = line.to_string();
    text.push('\n');
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(|error| format!("standard output: {error}"))
}
