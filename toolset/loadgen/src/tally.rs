//! Counts and time distributions of a worker, and their sum over all workers.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use crate::distribution::Distribution;
use crate::scenario::Scenario;

/// Counts that can be summed over workers.
pub trait Accumulate {
    fn add(&mut self, other: &Self);
}

impl Accumulate for u64 {
    fn add(&mut self, other: &Self) {
        *self += other;
    }
}

impl Accumulate for BTreeMap<String, u64> {
    fn add(&mut self, other: &Self) {
        for (key, count) in other {
            *self.entry(key.clone()).or_default() += count;
        }
    }
}

impl Accumulate for Distribution {
    fn add(&mut self, other: &Self) {
        self.merge(other);
    }
}

impl<T: Accumulate> Accumulate for Vec<T> {
    fn add(&mut self, other: &Self) {
        self.iter_mut().zip(other).for_each(|(mine, theirs)| mine.add(theirs));
    }
}

macro_rules! accumulating {
    ($($(#[$meta:meta])* $name:ident { $($(#[$field_meta:meta])* $field:ident: $kind:ty,)* })*) => {
        $(
            $(#[$meta])*
            #[derive(Clone, Debug, Default, Serialize)]
            pub struct $name {
                $($(#[$field_meta])* pub $field: $kind,)*
            }

            impl Accumulate for $name {
                fn add(&mut self, other: &Self) {
                    $(self.$field.add(&other.$field);)*
                }
            }
        )*
    };
}

accumulating! {
    /// Counts of a worker, or totals over all workers.
    Tally {
        /// Requests of an open loop or a scenario that became due.
        due: u64,
        /// Requests written, including failed writes.
        sent: u64,
        /// Complete responses to requests, with any status.
        received: u64,
        /// Responses with the expected status, or with any 2xx status if the request does not define a status.
        successes: u64,
        /// Responses without an outstanding request.
        unsolicited_responses: u64,
        /// Bytes received without an outstanding request: complete or partial responses, and other data.
        unsolicited_bytes: u64,
        /// Bytes read.
        bytes_in: u64,
        /// Connections established.
        connections_opened: u64,
        /// Connections established with TLS, by the negotiated parameters.
        tls_sessions: BTreeMap<String, u64>,
        /// Connections that the peer closed or reset, including closes announced in a response.
        connections_closed_by_peer: u64,
        /// GOAWAY frames, with which HTTP/2 servers refuse further requests on a connection.
        goaways: u64,
        /// Requests that a GOAWAY frame reported as unprocessed. They were sent again, and `sent` counts them once.
        repeated: u64,
        /// WebSocket connections that the generator closed, and to which the server replied with status code 1000.
        normal_closures: u64,
        /// Connections closed because no response arrived within the timeout.
        connections_hung: u64,
        /// Maximum number of due requests that waited for a free connection at the same time. The total is the sum of the
        /// workers' maxima.
        backlog_peak: u64,
        errors: FaultCounts,
        /// Complete responses by status.
        statuses: StatusCounts,
        /// Time from the intended send time to the last byte of a successful response. Empty in a closed loop.
        latency: Distribution,
        /// Time from writing the request to the last byte of a successful response.
        service: Distribution,
        /// Delay of sending that the generator itself caused. Empty in a closed loop.
        lag: Distribution,
    }

    /// The counts at the end of the load, before the drain.
    LoadCounts {
        due: u64,
        received: u64,
        successes: u64,
        bytes_in: u64,
    }

    /// Counts of an operation: `due` is the sum of `answered`, all errors and `unfinished`.
    OperationTally {
        due: u64,
        /// Responses with the expected status and all values to capture.
        answered: u64,
        /// Requests that have neither a response nor an error when the drain ends.
        unfinished: u64,
        errors: FaultCounts,
        latency: Distribution,
        service: Distribution,
    }

    /// Counts of a use case: `due` is the sum of `done`, `failed` and `unfinished`.
    UseCaseTally {
        due: u64,
        /// Arrivals whose steps have all succeeded.
        done: u64,
        /// Arrivals with a failed step.
        failed: u64,
        /// Arrivals still in progress when the drain ends.
        unfinished: u64,
        /// Time from the arrival to the last byte of the last response.
        latency: Distribution,
    }

    /// Counts for a scenario: one tally per operation and one per use case, in the scenario's order.
    ScenarioTally {
        operations: Vec<OperationTally>,
        use_cases: Vec<UseCaseTally>,
    }
}

/// Counts by status code.
#[derive(Clone, Debug)]
pub struct StatusCounts(Vec<u64>);

impl Default for StatusCounts {
    fn default() -> Self {
        Self(vec![0; 1000])
    }
}

impl StatusCounts {
    #[inline]
    pub fn count(&mut self, status: u16) {
        self.0[usize::from(status)] += 1;
    }
}

impl Accumulate for StatusCounts {
    fn add(&mut self, other: &Self) {
        self.0.add(&other.0);
    }
}

impl Serialize for StatusCounts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().enumerate().filter(|&(_, &count)| count > 0))
    }
}

/// Why a request or a connection attempt failed. Failed requests never count as throughput.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Fault {
    /// A connection could not be established. All other faults belong to requests.
    Connect,
    /// The kernel rejected the request because the connection was broken.
    Write,
    /// The peer closed the connection before the response was complete.
    Closed,
    /// No complete response arrived within the timeout.
    Timeout,
    /// The response violates the protocol, or its end cannot be determined.
    Framing,
    /// The connection was closed because an earlier request on it failed.
    Dropped,
    /// HTTP/2 only: the server reset the stream.
    Reset,
    /// WebSocket only: the echo differs from the message.
    Mismatch,
    /// The response has an unexpected status.
    Status,
    /// Scenario only: the response lacks a value that a later step needs.
    MissingCapture,
}

const FAULT_NAMES: [&str; 10] =
    ["connect", "write", "closed", "timeout", "framing", "dropped", "reset", "mismatch", "status", "missing_value"];

impl Fault {
    /// Return the fault's name as it appears in the output.
    pub fn name(self) -> &'static str {
        FAULT_NAMES[self as usize]
    }
}

/// Counts by fault.
#[derive(Clone, Debug, Default)]
pub struct FaultCounts([u64; FAULT_NAMES.len()]);

impl FaultCounts {
    pub fn count(&mut self, fault: Fault) {
        self.0[fault as usize] += 1;
    }
}

impl Accumulate for FaultCounts {
    fn add(&mut self, other: &Self) {
        self.0.iter_mut().zip(&other.0).for_each(|(mine, theirs)| *mine += theirs);
    }
}

impl Serialize for FaultCounts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(FAULT_NAMES.iter().zip(self.0))
    }
}

impl ScenarioTally {
    /// Create empty counts for a scenario.
    pub fn new(scenario: &Scenario) -> Self {
        Self {
            operations: vec![OperationTally::default(); scenario.operations.len()],
            use_cases: vec![UseCaseTally::default(); scenario.use_cases.len()],
        }
    }

    /// Return the counts with the names of use cases and operations, as printed in the results.
    pub fn to_json(&self, scenario: &Scenario) -> Value {
        let mut counts = json!(self);
        for (index, operation) in scenario.operations.iter().enumerate() {
            counts["operations"][index]["use_case"] = json!(scenario.use_cases[operation.use_case].name);
            counts["operations"][index]["operation"] = json!(operation.name);
        }
        for (index, case) in scenario.use_cases.iter().enumerate() {
            counts["use_cases"][index]["use_case"] = json!(case.name);
        }
        counts
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
    fn counts_of_workers_add_up() {
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
    fn scenario_counts_add_up() {
        let step = |name: &str| json!({"name": name, "method": "GET", "path": "/", "status": 200});
        let plan = json!({"use_cases": [{"name": "shop", "rate": 1, "steps": [step("a"), step("b"), step("a")]}]});
        let scenario = Scenario::parse(&plan.to_string()).unwrap();
        let mut counted = ScenarioTally::new(&scenario);
        counted.operations[0].due = 3;
        counted.operations[0].errors.count(Fault::MissingCapture);
        counted.operations[0].latency.record(1_000_000, 2);
        counted.use_cases[0].failed = 1;
        let mut sum = counted.clone();
        sum.add(&counted);
        let json = sum.to_json(&scenario);
        let first = &json["operations"][0];
        assert_eq!((&first["use_case"], &first["operation"], &first["due"]), (&json!("shop"), &json!("a"), &json!(6)));
        assert_eq!((&first["errors"]["missing_value"], &first["latency"]["count"]), (&json!(2), &json!(4)));
        assert_eq!(json["operations"][1]["latency"], Value::Null);
        assert_eq!(json["use_cases"][0]["failed"], 2);
    }
}
