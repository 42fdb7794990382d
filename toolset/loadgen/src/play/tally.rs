//! What a worker counts of a scenario, by operation and by use case.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::distribution::Distribution;
use crate::scenario::Scenario;

/// What ends an arrival before its last answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Fault {
    /// The answer could not be read to its end, is no HTTP/1.1, or lacks what a later step needs.
    Read,
    /// The kernel did not take the request.
    Write,
    /// No complete answer within the timeout.
    Timeout,
    /// Another status than the step asks for.
    Status,
}

const FAULTS: [(Fault, &str); 4] =
    [(Fault::Read, "read"), (Fault::Write, "write"), (Fault::Timeout, "timeout"), (Fault::Status, "status")];

impl Fault {
    /// As the results name it.
    pub fn name(self) -> &'static str {
        FAULTS[self as usize].1
    }
}

/// Of one operation of one use case: `due` is the sum of `answered`, all errors and `unfinished`.
#[derive(Clone, Debug, Default)]
pub struct OperationTally {
    /// Requests whose time came.
    pub due: u64,
    /// Answers as asked for.
    pub answered: u64,
    /// Requests that were due and have neither answer nor error at the end.
    pub unfinished: u64,
    /// From the due time to the last byte of a good answer.
    pub response: Distribution,
    /// From the write of the request to the last byte of a good answer.
    pub service: Distribution,
    /// Complete answers by status.
    pub statuses: BTreeMap<u16, u64>,
    faults: [u64; FAULTS.len()],
}

/// Of one use case: `due` is the sum of `done`, `failed` and `unfinished`.
#[derive(Clone, Debug, Default)]
pub struct CourseTally {
    /// Arrivals.
    pub due: u64,
    /// Arrivals whose last answer came.
    pub done: u64,
    /// Arrivals of which a step failed.
    pub failed: u64,
    /// Arrivals that were under way at the end.
    pub unfinished: u64,
    /// From the arrival to the last byte of its last answer.
    pub response: Distribution,
}

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Plain counts of a scenario; each adds up over workers.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct Counters {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl Counters {
            fn add(&mut self, other: &Self) {
                $(self.$name += other.$name;)*
            }
        }
    };
}

counters! {
    /// Bytes read.
    bytes_in,
    /// Bytes written.
    bytes_out,
    /// Connections established.
    opened,
    /// Tries to connect that failed.
    refused,
    /// Connections established again in place of one that was lost.
    reconnects,
    /// Connections that the peer closed or reset.
    closed_by_peer,
    /// Connections given up since no answer came within the timeout.
    hung,
    /// Complete answers that no request was waiting for.
    unasked,
    /// Requests whose time came before the load's end.
    due_in_time,
    /// Good answers before the load's end.
    answered_in_time,
    /// Arrivals whose last answer came before the load's end.
    done_in_time,
    /// Most steps that were due and waited for a free connection; over several workers the sum of their maxima.
    backlog_peak,
}

/// Everything of one worker, or of several.
#[derive(Clone, Debug)]
pub struct Tally {
    /// By place in the scenario.
    pub operations: Vec<OperationTally>,
    /// By place in the scenario.
    pub courses: Vec<CourseTally>,
    /// What the generator itself was late by.
    pub lag: Distribution,
    /// Plain counts.
    pub counters: Counters,
}

impl OperationTally {
    /// Count a request that failed.
    pub fn fault(&mut self, fault: Fault) {
        self.faults[fault as usize] += 1;
    }

    fn add(&mut self, other: &Self) {
        self.due += other.due;
        self.answered += other.answered;
        self.unfinished += other.unfinished;
        self.response.add(&other.response);
        self.service.add(&other.service);
        for (status, count) in &other.statuses {
            *self.statuses.entry(*status).or_default() += count;
        }
        for (mine, theirs) in self.faults.iter_mut().zip(&other.faults) {
            *mine += theirs;
        }
    }

    fn json(&self, use_case: &str, operation: &str) -> Value {
        let mut errors: Map<String, Value> =
            FAULTS.iter().map(|(fault, name)| ((*name).into(), self.faults[*fault as usize].into())).collect();
        errors.insert("connect".into(), 0.into()); // no request is to blame: these are counted of connections
        json!({
            "use_case": use_case,
            "operation": operation,
            "due": self.due,
            "answered": self.answered,
            "unfinished": self.unfinished,
            "errors": errors,
            "statuses": self.statuses.iter().map(|(status, count)| (status.to_string(), *count)).collect::<BTreeMap<_, _>>(),
            "response_time": self.response.json(),
            "service_time": self.service.json(),
        })
    }
}

impl CourseTally {
    fn add(&mut self, other: &Self) {
        self.due += other.due;
        self.done += other.done;
        self.failed += other.failed;
        self.unfinished += other.unfinished;
        self.response.add(&other.response);
    }

    fn json(&self, use_case: &str) -> Value {
        json!({
            "use_case": use_case,
            "due": self.due,
            "done": self.done,
            "failed": self.failed,
            "unfinished": self.unfinished,
            "response_time": self.response.json(),
        })
    }
}

impl Tally {
    /// Nothing yet of this scenario.
    pub fn new(scenario: &Scenario) -> Self {
        Self {
            operations: vec![OperationTally::default(); scenario.operations.len()],
            courses: vec![CourseTally::default(); scenario.use_cases.len()],
            lag: Distribution::default(),
            counters: Counters::default(),
        }
    }

    /// Add what another worker counted.
    pub fn add(&mut self, other: &Self) {
        self.operations.iter_mut().zip(&other.operations).for_each(|(mine, theirs)| mine.add(theirs));
        self.courses.iter_mut().zip(&other.courses).for_each(|(mine, theirs)| mine.add(theirs));
        self.lag.add(&other.lag);
        self.counters.add(&other.counters);
    }

    /// As the results show it.
    pub fn json(&self, scenario: &Scenario) -> Map<String, Value> {
        let sum = |count: fn(&CourseTally) -> u64| self.courses.iter().map(count).sum::<u64>();
        let operations: Vec<Value> = scenario
            .operations
            .iter()
            .zip(&self.operations)
            .map(|(operation, tally)| tally.json(&scenario.use_cases[operation.use_case].name, &operation.name))
            .collect();
        let courses: Vec<Value> =
            scenario.use_cases.iter().zip(&self.courses).map(|(case, tally)| tally.json(&case.name)).collect();
        let counters = &self.counters;
        crate::lines::as_map(json!({
            "arrivals_due": sum(|one| one.due),
            "arrivals_done": sum(|one| one.done),
            "arrivals_failed": sum(|one| one.failed),
            "unfinished": sum(|one| one.unfinished),
            "in_time": {
                "due": counters.due_in_time,
                "answered": counters.answered_in_time,
                "arrivals_done": counters.done_in_time,
            },
            "operations": operations,
            "use_cases": courses,
            "lag": self.lag.json(),
            "backlog_peak": counters.backlog_peak,
            "bytes": {"received": counters.bytes_in, "sent": counters.bytes_out},
            "connections": {
                "opened": counters.opened,
                "refused": counters.refused,
                "reconnects": counters.reconnects,
                "closed_by_peer": counters.closed_by_peer,
                "hung": counters.hung,
                "unasked_responses": counters.unasked,
            },
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scenario() -> Scenario {
        let step = |name: &str| json!({"name": name, "method": "GET", "path": "/", "status": 200});
        let plan = json!({"use_cases": [{"name": "shop", "rate": 1, "steps": [step("a"), step("b"), step("a")]}]});
        Scenario::parse(&plan.to_string()).unwrap()
    }

    fn counted() -> Tally {
        let mut tally = Tally::new(&scenario());
        tally.operations[0].due = 3;
        tally.operations[0].answered = 2;
        tally.operations[0].fault(Fault::Status);
        tally.operations[0].statuses.insert(503, 1);
        tally.operations[0].response.record(1_000_000, 2);
        tally.courses[0].due = 2;
        tally.courses[0].failed = 1;
        tally.counters.backlog_peak = 4;
        tally
    }

    #[test]
    fn workers_add_up() {
        let mut sum = counted();
        sum.add(&counted());
        let json = sum.json(&scenario());
        assert_eq!((&json["arrivals_due"], &json["arrivals_failed"]), (&json!(4), &json!(2)));
        let first = &json["operations"][0];
        assert_eq!((&first["use_case"], &first["operation"], &first["due"]), (&json!("shop"), &json!("a"), &json!(6)));
        assert_eq!(first["errors"], json!({"connect": 0, "read": 0, "write": 0, "timeout": 0, "status": 2}));
        assert_eq!((&first["statuses"], &first["response_time"]["count"]), (&json!({"503": 2}), &json!(4)));
        assert_eq!(json["operations"][1]["response_time"], Value::Null);
        assert_eq!(json["backlog_peak"], 8);
    }
}
