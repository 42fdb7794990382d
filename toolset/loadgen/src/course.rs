//! A scenario in one worker: which arrivals come when, what each asks for next, and what an answer means for it.

use std::sync::Arc;

use crate::arrival::{Arrival, Outcome};
use crate::arrivals::{Arrivals, Process, Random};
use crate::response::Capture;
use crate::scenario::{Scenario, Step};
use crate::tally::{Fault, ScenarioTally};

/// The arrivals of one use case in one worker: the same of a seed, whatever the server does.
#[derive(Debug)]
struct Stream {
    arrivals: Arrivals,
    random: Random, // of their variables
    next: u64,
}

/// The arrivals of one worker.
#[derive(Debug, Default)]
pub struct Course {
    scenario: Arc<Scenario>,
    keep: bool,
    streams: Vec<Stream>, // by use case
    under_way: Vec<Option<Box<Arrival>>>,
    vacant: Vec<u32>, // places in `under_way`
    ended: Vec<Arrival>,
    tally: ScenarioTally,
    request: Vec<u8>,
    body: String,
}

impl Course {
    /// Nothing has come yet; `keep`: the arrivals' answers are written out.
    pub fn new(scenario: Arc<Scenario>, keep: bool) -> Self {
        Self { tally: ScenarioTally::new(&scenario), scenario, keep, ..Self::default() }
    }

    /// The share of worker `worker` of `workers` in every use case from `start` on: independent streams of one seed.
    pub fn start(&mut self, start: u64, worker: usize, workers: usize, seed: u64) {
        let stream = |(place, rate): (usize, f64)| {
            let mut seeds = Random::new(seed ^ (place as u64 + 1).wrapping_mul(0xa076_1d64_78bd_642f));
            let (times, values) = (seeds.bits(), seeds.bits());
            let mut arrivals = Arrivals::new(Process::Poisson, rate, start, worker, workers, times);
            let next = arrivals.draw();
            let random = Random::new(values.wrapping_add((worker as u64).wrapping_mul(0x8ebc_6af0_9c88_c6e3)));
            Stream { arrivals, random, next }
        };
        self.streams = self.scenario.use_cases.iter().map(|case| case.rate).enumerate().map(stream).collect();
    }

    /// When the next arrival comes.
    pub fn next(&self) -> u64 {
        self.streams.iter().map(|stream| stream.next).min().unwrap_or(u64::MAX)
    }

    /// Begin the arrival that comes next; its place.
    pub fn arrive(&mut self) -> u32 {
        let Some((place, stream)) = self.streams.iter_mut().enumerate().min_by_key(|(_, stream)| stream.next) else {
            return u32::MAX; // before the start nothing comes
        };
        let use_case = &self.scenario.use_cases[place];
        let arrival = Arrival::new(place, stream.next, use_case.draw(&mut stream.random));
        stream.next = stream.arrivals.draw();
        self.tally.use_cases[place].due += 1;
        self.tally.operations[use_case.steps[0].operation].due += 1;
        let id = self.vacant.pop().unwrap_or_else(|| {
            self.under_way.push(None);
            self.under_way.len() as u32 - 1
        });
        self.under_way[id as usize] = Some(Box::new(arrival));
        id
    }

    fn step(&self, arrival: &Arrival) -> &Step {
        &self.scenario.use_cases[arrival.use_case].steps[arrival.step]
    }

    /// The bytes of the request that is due, which is sent now, and whether its answer is looked into.
    pub fn ask(&mut self, id: u32, headers: &str) -> (&[u8], bool) {
        let Some(arrival) = &mut self.under_way[id as usize] else { return (&[], false) };
        arrival.sent = true;
        let step = &self.scenario.use_cases[arrival.use_case].steps[arrival.step];
        step.write(headers, &arrival.values, &mut self.request, &mut self.body);
        (&self.request, self.keep || !step.captures.is_empty())
    }

    /// An arrival has an answer: whether its next step is due now, or what was wrong. Times in nanoseconds.
    pub fn answered(&mut self, id: u32, status: u16, capture: &Capture, times: Times) -> Result<bool, Fault> {
        let Some(arrival) = &mut self.under_way[id as usize] else { return Ok(false) };
        let steps = &self.scenario.use_cases[arrival.use_case].steps;
        let step = &steps[arrival.step];
        if self.keep {
            arrival.keep(status, times.received, &capture.body);
        }
        let right = status == step.status;
        let fault = if right { Fault::Lacking } else { Fault::Status };
        if !right || !step.capture(&capture.body, &mut arrival.values) {
            self.give_up(id, fault);
            return Err(fault);
        }
        let tally = &mut self.tally.operations[step.operation];
        tally.answered += 1;
        tally.latency.record(times.received - times.due, 1);
        tally.service.record(times.received - times.sent, 1);
        arrival.go_on();
        if let Some(next) = steps.get(arrival.step) {
            self.tally.operations[next.operation].due += 1;
            return Ok(true);
        }
        let tally = &mut self.tally.use_cases[arrival.use_case];
        tally.done += 1;
        tally.latency.record(times.received - arrival.came, 1);
        self.take_away(id);
        Ok(false)
    }

    /// Its request has no answer: the arrival goes no further.
    pub fn failed(&mut self, id: u32, fault: Fault) {
        if let Some(arrival) = &mut self.under_way[id as usize] {
            arrival.outcomes.push(Outcome::Fault(fault));
            self.give_up(id, fault);
        }
    }

    fn give_up(&mut self, id: u32, fault: Fault) {
        let Some(arrival) = &self.under_way[id as usize] else { return };
        let operation = self.step(arrival).operation;
        self.tally.use_cases[arrival.use_case].failed += 1;
        self.tally.operations[operation].errors.count(fault);
        self.take_away(id);
    }

    fn take_away(&mut self, id: u32) {
        let arrival = self.under_way[id as usize].take();
        self.vacant.push(id);
        if self.keep {
            self.ended.extend(arrival.map(|arrival| *arrival));
        }
    }

    /// The counts and the arrivals that are kept; what is under way is unfinished.
    pub fn end(mut self) -> (ScenarioTally, Vec<Arrival>) {
        for mut arrival in std::mem::take(&mut self.under_way).into_iter().flatten() {
            let operation = self.step(&arrival).operation;
            self.tally.operations[operation].unfinished += 1;
            self.tally.use_cases[arrival.use_case].unfinished += 1;
            if arrival.sent {
                arrival.outcomes.push(Outcome::Unfinished);
            }
            if self.keep {
                self.ended.push(*arrival);
            }
        }
        (self.tally, self.ended)
    }
}

/// When a request was due, when it was sent and when the last byte of its answer came, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    pub due: u64,
    pub sent: u64,
    pub received: u64,
}
