//! Plays a scenario to its end: ready, go, and one document with the results.

pub mod arrival;
pub mod player;
pub mod tally;

use std::fs::File;
use std::io::{BufWriter, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::thread::JoinHandle;
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::process::nice;
use serde_json::json;

use self::arrival::Arrival;
use self::player::{Event, Given, Player};
use self::tally::Tally;
use crate::arguments::{Plan, Play};
use crate::clock::{MILLISECOND, SECOND, cpu_seconds, now};
use crate::control::{LEAD, NICE};
use crate::limits::raise_file_limit;
use crate::lines::{as_map, print, ready, seconds};
use crate::listening::{Listener, Word};
use crate::opening::{self, Told};
use crate::reports::{CANCELLED, Ending, Reports, Times, bell, ring};
use crate::scenario::Scenario;

struct Stage {
    plan: Arc<Plan>,
    scenario: Arc<Scenario>,
    times: Arc<Times>,
    events: Receiver<Event>,
    listener: Listener,
    wakes: Vec<OwnedFd>,
    gone: bool, // somebody said go, or need not
}

/// What all players did.
struct Results {
    tally: Tally,
    arrivals: Vec<Arrival>,
    drained: u64,
    run_queue_wait: Option<u64>,
    cpu_seconds: f64, // of the load, without what came after
    stopped_by: &'static str,
}

/// Play it. The results go to standard output as one JSON document; an error is one sentence.
pub fn run(play: Play) -> Result<Ending, String> {
    let rung = Arc::new(bell()?);
    let listener = Listener::new(Arc::clone(&rung))?;
    raise_file_limit(play.plan.connections)?;
    let answers = play.answers.map(|path| create(&path).map(|file| (path, file))).transpose()?;
    let (reports, events) = Reports::new(rung);
    let headers: String = play.headers.iter().flat_map(|(name, value)| [name, ": ", value, "\r\n"]).collect();
    let headers: Arc<str> = headers.into();
    let mut stage = Stage {
        gone: play.plan.start_at_once,
        plan: Arc::new(play.plan),
        scenario: Arc::new(play.scenario),
        times: Arc::default(),
        events,
        listener,
        wakes: Vec::new(),
    };
    let mut threads = Vec::new();
    for index in 0..stage.plan.threads {
        let wake = bell()?;
        stage.wakes.push(wake.try_clone().map_err(|error| error.to_string())?);
        let given = Given {
            plan: Arc::clone(&stage.plan),
            scenario: Arc::clone(&stage.scenario),
            headers: Arc::clone(&headers),
            keep: answers.is_some(),
            times: Arc::clone(&stage.times),
            reports: reports.clone(),
            wake,
        };
        let thread = std::thread::Builder::new().name(format!("player {index}"));
        threads.push(thread.spawn(move || Player::work(index, given)).map_err(|error| error.to_string())?);
    }
    drop(reports);
    let ending = stage.direct(answers);
    if !matches!(ending, Ok(Ending::Results)) {
        stage.times.stop_at(0); // nobody reads results any more: a load under way ends as well
        stage.start_at(CANCELLED);
    }
    finish(threads)?;
    ending
}

fn finish(threads: Vec<JoinHandle<()>>) -> Result<(), String> {
    threads.into_iter().try_for_each(|thread| thread.join().map_err(|_| "a player ended in a panic".to_owned()))
}

fn create(path: &Path) -> Result<File, String> {
    File::create(path).map_err(|error| format!("--answers {}: {error}", path.display()))
}

impl Stage {
    fn direct(&mut self, answers: Option<(PathBuf, File)>) -> Result<Ending, String> {
        let Some(up) = self.connections()? else { return Ok(Ending::NotStarted) };
        let complete = up == self.plan.connections;
        if !self.plan.start_at_once {
            print(&ready(complete, up, self.plan.connections, now()))?;
        }
        if !complete {
            return Ok(opening::not_connected(&self.plan, up));
        }
        if !opening::go(&mut self.listener, self.gone)? {
            return Ok(Ending::NotStarted);
        }
        let start = now() + LEAD;
        let began = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        if let Some(duration) = self.plan.duration {
            self.times.stop_at(start + duration);
        }
        let results = self.results(start)?;
        self.print(start, began, &results)?;
        if let Some((path, file)) = answers {
            write_answers(file, results.arrivals, &self.scenario)
                .map_err(|error| format!("--answers {}: {error}", path.display()))?;
        }
        Ok(Ending::Results)
    }

    /// Connections of all players once each has done what it could; None when it was called off before.
    fn connections(&mut self) -> Result<Option<usize>, String> {
        let told = |event| match event {
            Event::Failed { message } => Told::Failed(message),
            Event::Connected { connections } => Told::Connected(connections),
            Event::Stopped | Event::Ended(_) => Told::Other,
        };
        opening::connections(self.plan.threads, &self.events, &mut self.listener, &mut self.gone, told)
    }

    fn results(&mut self, start: u64) -> Result<Results, String> {
        let cpu_before = cpu_seconds();
        self.start_at(start);
        let _ = nice(NICE);
        let mut results = Results {
            tally: Tally::new(&self.scenario),
            arrivals: Vec::new(),
            drained: 0,
            run_queue_wait: Some(0),
            cpu_seconds: 0.0,
            stopped_by: "duration",
        };
        let mut ended = 0;
        while ended < self.plan.threads {
            while let Ok(event) = self.events.try_recv() {
                match event {
                    Event::Connected { .. } | Event::Failed { .. } => {}
                    Event::Stopped => results.cpu_seconds = cpu_seconds() - cpu_before,
                    Event::Ended(share) => {
                        results.tally.add(&share.tally);
                        results.arrivals.extend(share.arrivals);
                        results.drained = results.drained.max(share.drained);
                        results.run_queue_wait =
                            results.run_queue_wait.zip(share.run_queue_wait).map(|(sum, this)| sum + this);
                        ended += 1;
                    }
                }
            }
            let asked = ended < self.plan.threads && self.listener.listen(Some(SECOND))? == Some(Word::Stop);
            if asked && self.times.stop_by(now() + MILLISECOND) {
                results.stopped_by = "asked";
                self.wake_all();
            }
        }
        Ok(results)
    }

    fn print(&self, start: u64, began: f64, results: &Results) -> Result<(), String> {
        let stop = self.times.stop();
        let mut document = results.tally.json(&self.scenario);
        document.extend(as_map(json!({
            "kind": "scenario",
            "began": began,
            "start_ns": start,
            "end_ns": stop,
            "seconds": seconds(stop.saturating_sub(start)),
            "stopped_by": results.stopped_by,
            "drain_seconds": seconds(results.drained),
            "cpu_seconds": results.cpu_seconds,
            "run_queue_wait_seconds": results.run_queue_wait.map(seconds),
            "threads": self.plan.threads,
            "seed": self.plan.seed,
        })));
        document["connections"]["asked"] = self.plan.connections.into();
        print(&document.into())
    }

    fn start_at(&self, start: u64) {
        self.times.start_at(start);
        self.wake_all();
    }

    fn wake_all(&self) {
        self.wakes.iter().for_each(ring);
    }
}

/// A line for each arrival, in the order of coming.
fn write_answers(file: File, mut arrivals: Vec<Arrival>, scenario: &Scenario) -> std::io::Result<()> {
    arrivals.sort_by_key(|arrival| arrival.came);
    let mut file = BufWriter::with_capacity(1 << 20, file);
    for arrival in arrivals {
        serde_json::to_writer(&mut file, &arrival.line(scenario))?;
        file.write_all(b"\n")?;
    }
    file.flush()
}
