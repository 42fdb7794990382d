//! Runs a scenario in a worker: starts arrivals, writes their requests and checks responses.

use std::sync::Arc;

use crate::arrival::{Arrival, Outcome};
use crate::random::Random;
use crate::response::CapturedResponse;
use crate::scenario::{Scenario, Step};
use crate::schedule::{ArrivalProcess, Schedule};
use crate::tally::{Fault, ScenarioTally};

/// A worker's share of a use case's arrivals. Their times depend only on the seed, not on the server.
#[derive(Debug)]
struct ArrivalStream {
    schedule: Schedule,
    random: Random, // generator of variable values
    next: u64,      // time of the next arrival
}

/// A worker's share of a scenario: streams of arrivals, active arrivals, and counts.
#[derive(Debug, Default)]
pub struct ScenarioRunner {
    scenario: Arc<Scenario>,
    record: bool,                // whether responses are recorded
    streams: Vec<ArrivalStream>, // in the order of the use cases
    active: Vec<Option<Box<Arrival>>>,
    vacant: Vec<u32>, // free indices of `active`
    ended: Vec<Arrival>,
    tally: ScenarioTally,
    request: Vec<u8>,
    body: String,
}

impl ScenarioRunner {
    /// Create a runner without arrivals. If `record` is true, it keeps all responses for the responses file.
    pub fn new(scenario: Arc<Scenario>, record: bool) -> Self {
        Self { tally: ScenarioTally::new(&scenario), scenario, record, ..Self::default() }
    }

    /// Start this worker's arrival streams at `start`, in nanoseconds. All workers share a seed, but their streams are
    /// independent.
    pub fn start(&mut self, start: u64, worker: usize, workers: usize, seed: u64) {
        let stream = |(index, rate): (usize, f64)| {
            let mut seeds = Random::new(seed ^ (index as u64 + 1).wrapping_mul(0xa076_1d64_78bd_642f));
            let (times, values) = (seeds.bits(), seeds.bits());
            let mut schedule = Schedule::new(ArrivalProcess::Poisson, rate, start, worker, workers, times);
            let next = schedule.draw();
            let random = Random::new(values.wrapping_add((worker as u64).wrapping_mul(0x8ebc_6af0_9c88_c6e3)));
            ArrivalStream { schedule, random, next }
        };
        self.streams = self.scenario.use_cases.iter().map(|case| case.rate).enumerate().map(stream).collect();
    }

    /// Return the time of the next arrival.
    pub fn next_arrival(&self) -> u64 {
        self.streams.iter().map(|stream| stream.next).min().unwrap_or(u64::MAX)
    }

    /// Begin the next arrival and return its id.
    pub fn begin_arrival(&mut self) -> u32 {
        let Some((index, stream)) = self.streams.iter_mut().enumerate().min_by_key(|(_, stream)| stream.next) else {
            return u32::MAX; // not started yet
        };
        let use_case = &self.scenario.use_cases[index];
        let arrival = Arrival::new(index, stream.next, use_case.draw(&mut stream.random));
        stream.next = stream.schedule.draw();
        self.tally.use_cases[index].due += 1;
        self.tally.operations[use_case.steps[0].operation].due += 1;
        let id = self.vacant.pop().unwrap_or_else(|| {
            self.active.push(None);
            self.active.len() as u32 - 1
        });
        self.active[id as usize] = Some(Box::new(arrival));
        id
    }

    fn step(&self, arrival: &Arrival) -> &Step {
        &self.scenario.use_cases[arrival.use_case].steps[arrival.step]
    }

    /// Return the current step's request, and whether to capture the response. Mark the step as sent.
    pub fn write_request(&mut self, id: u32, headers: &str) -> (&[u8], bool) {
        let Some(arrival) = &mut self.active[id as usize] else { return (&[], false) };
        arrival.sent = true;
        let step = &self.scenario.use_cases[arrival.use_case].steps[arrival.step];
        step.write(headers, &arrival.values, &mut self.request, &mut self.body);
        (&self.request, self.record || !step.captures.is_empty())
    }

    /// Record a response. Return whether a further step is due now, or the response's fault.
    pub fn record_response(
        &mut self,
        id: u32,
        status: u16,
        capture: &CapturedResponse,
        times: RequestTimes,
    ) -> Result<bool, Fault> {
        let Some(arrival) = &mut self.active[id as usize] else { return Ok(false) };
        let steps = &self.scenario.use_cases[arrival.use_case].steps;
        let step = &steps[arrival.step];
        if self.record {
            arrival.record(status, times.received, &capture.body);
        }
        let expected = status == step.status;
        let fault = if expected { Fault::MissingCapture } else { Fault::Status };
        if !expected || !step.capture(&capture.body, &mut arrival.values) {
            self.fail(id, fault);
            return Err(fault);
        }
        let tally = &mut self.tally.operations[step.operation];
        tally.answered += 1;
        tally.latency.record(times.received - times.due, 1);
        tally.service.record(times.received - times.sent, 1);
        arrival.next_step();
        if let Some(next) = steps.get(arrival.step) {
            self.tally.operations[next.operation].due += 1;
            return Ok(true);
        }
        let tally = &mut self.tally.use_cases[arrival.use_case];
        tally.done += 1;
        tally.latency.record(times.received - arrival.started_at, 1);
        self.remove(id);
        Ok(false)
    }

    /// End an arrival after a failed request.
    pub fn record_fault(&mut self, id: u32, fault: Fault) {
        if let Some(arrival) = &mut self.active[id as usize] {
            arrival.outcomes.push(Outcome::Fault(fault));
            self.fail(id, fault);
        }
    }

    fn fail(&mut self, id: u32, fault: Fault) {
        let Some(arrival) = &self.active[id as usize] else { return };
        let operation = self.step(arrival).operation;
        self.tally.use_cases[arrival.use_case].failed += 1;
        self.tally.operations[operation].errors.count(fault);
        self.remove(id);
    }

    fn remove(&mut self, id: u32) {
        let arrival = self.active[id as usize].take();
        self.vacant.push(id);
        if self.record {
            self.ended.extend(arrival.map(|arrival| *arrival));
        }
    }

    /// Return the counts and the recorded arrivals. Active arrivals count as unfinished.
    pub fn finish(mut self) -> (ScenarioTally, Vec<Arrival>) {
        for mut arrival in std::mem::take(&mut self.active).into_iter().flatten() {
            let operation = self.step(&arrival).operation;
            self.tally.operations[operation].unfinished += 1;
            self.tally.use_cases[arrival.use_case].unfinished += 1;
            if arrival.sent {
                arrival.outcomes.push(Outcome::Unfinished);
            }
            if self.record {
                self.ended.push(*arrival);
            }
        }
        (self.tally, self.ended)
    }
}

/// Times of a request in nanoseconds: when it was due, when it was sent, and when the response's last byte arrived.
#[derive(Clone, Copy, Debug)]
pub struct RequestTimes {
    pub due: u64,
    pub sent: u64,
    pub received: u64,
}
