//! What a worker counts, also of a scenario's operations, and how counts become one.

use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use crate::distribution::Distribution;
use crate::scenario::Scenario;

/// Adds up over workers.
pub trait Sum {
    /// Add those of another.
    fn add(&mut self, other: &Self);
}

impl Sum for u64 {
    fn add(&mut self, other: &Self) {
        *self += other;
    }
}

impl Sum for Distribution {
    fn add(&mut self, other: &Self) {
        self.merge(other);
    }
}

impl<T: Sum> Sum for Vec<T> {
    fn add(&mut self, other: &Self) {
        self.iter_mut().zip(other).for_each(|(mine, theirs)| mine.add(theirs));
    }
}

macro_rules! sums {
    ($($(#[$meta:meta])* $name:ident { $($(#[$of_field:meta])* $field:ident: $kind:ty,)* })*) => {
        $(
            $(#[$meta])*
            #[derive(Clone, Debug, Default, Serialize)]
            pub struct $name {
                $($(#[$of_field])* pub $field: $kind,)*
            }

            impl Sum for $name {
                fn add(&mut self, other: &Self) {
                    $(self.$field.add(&other.$field);)*
                }
            }
        )*
    };
}

sums! {
    /// Everything of one worker, or of several.
    Tally {
        /// Requests of an open loop or a scenario whose time came.
        due: u64,
        /// Requests given to the kernel, also those that it refused.
        sent: u64,
        /// Complete responses to requests, of any status.
        received: u64,
        /// Good responses: with the status that is expected, or any 2xx where none is named.
        successes: u64,
        /// Responses that no request was waiting for.
        unasked_responses: u64,
        /// Bytes of those, complete or not, and of what is no response at all.
        unasked_bytes: u64,
        /// Bytes read.
        bytes_in: u64,
        /// Connections established.
        connections_opened: u64,
        /// Connections that the peer closed or reset, or of which it said that it would close them.
        connections_closed_by_peer: u64,
        /// Connections that were given up since no answer came within the timeout.
        connections_hung: u64,
        /// Most requests that were due and waited for a free connection.
        backlog_peak: u64,
        /// What went wrong.
        errors: Faults,
        /// Complete responses by status.
        statuses: Statuses,
        /// From the intended send time to the last byte of a good answer; not of a closed loop.
        latency: Distribution,
        /// From the write of the request to the last byte of a good answer.
        service: Distribution,
        /// What the generator itself was late by; not of a closed loop.
        lag: Distribution,
    }

    /// Of that what came before the load's end.
    InTime {
        due: u64,
        received: u64,
        successes: u64,
        bytes_in: u64,
    }

    /// Of one operation of one use case: `due` is the sum of `answered`, all errors and `unfinished`.
    OperationTally {
        /// Requests whose time came.
        due: u64,
        /// Answers as asked for.
        answered: u64,
        /// Requests that were due and have neither answer nor error at the end.
        unfinished: u64,
        /// What went wrong.
        errors: Faults,
        latency: Distribution,
        service: Distribution,
    }

    /// Of one use case: `due` is the sum of `done`, `failed` and `unfinished`.
    UseCaseTally {
        /// Arrivals.
        due: u64,
        /// Arrivals whose last answer came.
        done: u64,
        /// Arrivals of which a step failed.
        failed: u64,
        /// Arrivals that were under way at the end.
        unfinished: u64,
        /// From the arrival to the last byte of its last answer.
        latency: Distribution,
    }

    /// What became of a scenario in the whole load, by place in its plan.
    ScenarioTally {
        /// Steps of one name in one use case.
        operations: Vec<OperationTally>,
        /// Whole arrivals.
        use_cases: Vec<UseCaseTally>,
    }
}

/// Counts by status code.
#[derive(Clone, Debug)]
pub struct Statuses(Vec<u64>);

impl Default for Statuses {
    fn default() -> Self {
        Self(vec![0; 1000])
    }
}

impl Statuses {
    /// Count a response.
    #[inline]
    pub fn count(&mut self, status: u16) {
        self.0[usize::from(status)] += 1;
    }
}

impl Sum for Statuses {
    fn add(&mut self, other: &Self) {
        self.0.add(&other.0);
    }
}

impl Serialize for Statuses {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().enumerate().filter(|&(_, &count)| count > 0))
    }
}

/// What can go wrong, each of which is an error and never throughput.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Fault {
    /// A connection could not be established (of a connection; all others are of a request).
    Connect,
    /// The kernel did not take the request: the connection was broken.
    Write,
    /// The peer closed the connection before the answer was complete.
    Closed,
    /// No complete answer within the timeout.
    Timeout,
    /// The answer is not HTTP/1.1, or its end cannot be known.
    Framing,
    /// Waited on a connection that was given up for the fault of a request before it.
    Dropped,
    /// Another status than a good response has.
    Status,
    /// Of a scenario: an answer without what a later step needs.
    Lacking,
}

const FAULTS: [&str; 8] = ["connect", "write", "closed", "timeout", "framing", "dropped", "status", "lacking"];

impl Fault {
    /// As the lines name it.
    pub fn name(self) -> &'static str {
        FAULTS[self as usize]
    }
}

/// Counts by kind.
#[derive(Clone, Debug, Default)]
pub struct Faults([u64; FAULTS.len()]);

impl Faults {
    /// Count one of a kind.
    pub fn count(&mut self, fault: Fault) {
        self.0[fault as usize] += 1;
    }
}

impl Sum for Faults {
    fn add(&mut self, other: &Self) {
        self.0.iter_mut().zip(&other.0).for_each(|(mine, theirs)| *mine += theirs);
    }
}

impl Serialize for Faults {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(FAULTS.iter().zip(self.0))
    }
}

impl ScenarioTally {
    /// Nothing yet of this scenario.
    pub fn new(scenario: &Scenario) -> Self {
        Self {
            operations: vec![OperationTally::default(); scenario.operations.len()],
            use_cases: vec![UseCaseTally::default(); scenario.use_cases.len()],
        }
    }

    /// As the last line shows it, with names.
    pub fn json(&self, scenario: &Scenario) -> Value {
        let mut made = json!(self);
        for (place, operation) in scenario.operations.iter().enumerate() {
            made["operations"][place]["use_case"] = json!(scenario.use_cases[operation.use_case].name);
            made["operations"][place]["operation"] = json!(operation.name);
        }
        for (place, case) in scenario.use_cases.iter().enumerate() {
            made["use_cases"][place]["use_case"] = json!(case.name);
        }
        made
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(status: u16, backlog: u64) -> Tally {
        let mut tally = Tally { sent: 2, backlog_peak: backlog, ..Tally::default() };
        tally.errors.count(Fault::Closed);
        tally.statuses.count(status);
        tally.service.record(1_000_000, 1);
        tally
    }

    #[test]
    fn workers_add_up_with_their_backlogs() {
        let mut sum = tally(200, 3);
        sum.add(&tally(503, 4));
        let json = json!(sum);
        assert_eq!(
            (&json["sent"], &json["errors"]["closed"], &json["errors"]["write"]),
            (&4.into(), &2.into(), &0.into())
        );
        assert_eq!(json["statuses"], json!({"200": 1, "503": 1}));
        assert_eq!((&json["service"]["count"], &json["latency"]), (&2.into(), &Value::Null));
        assert_eq!(json["backlog_peak"], 7);
    }

    #[test]
    fn a_scenario_is_counted_by_operation_and_by_use_case_over_all_workers() {
        let step = |name: &str| json!({"name": name, "method": "GET", "path": "/", "status": 200});
        let plan = json!({"use_cases": [{"name": "shop", "rate": 1, "steps": [step("a"), step("b"), step("a")]}]});
        let scenario = Scenario::parse(&plan.to_string()).unwrap();
        let mut counted = ScenarioTally::new(&scenario);
        counted.operations[0].due = 3;
        counted.operations[0].errors.count(Fault::Lacking);
        counted.operations[0].latency.record(1_000_000, 2);
        counted.use_cases[0].failed = 1;
        let mut sum = counted.clone();
        sum.add(&counted);
        let json = sum.json(&scenario);
        let first = &json["operations"][0];
        assert_eq!((&first["use_case"], &first["operation"], &first["due"]), (&json!("shop"), &json!("a"), &json!(6)));
        assert_eq!((&first["errors"]["lacking"], &first["latency"]["count"]), (&json!(2), &json!(4)));
        assert_eq!(json["operations"][1]["latency"], Value::Null);
        assert_eq!(json["use_cases"][0]["failed"], 2);
    }
}
