//! An arrival (an execution of a use case), with variables, progress and recorded responses.

use serde_json::{Map, Value, json};

use crate::scenario::Scenario;
use crate::tally::Fault;

/// Maximum number of recorded bytes per response body.
const BODY_LIMIT: usize = 64 * 1024;

/// Result of a step.
#[derive(Debug)]
pub enum Outcome {
    Response {
        status: u16,
        /// Time at which the last byte arrived, in nanoseconds.
        received: u64,
        /// The first `BODY_LIMIT` bytes.
        body: Vec<u8>,
    },
    Fault(Fault),
    Unfinished, // no response by the end of the drain
}

/// An execution of a use case, either in progress or finished.
#[derive(Debug)]
pub struct Arrival {
    pub use_case: usize,        // index of the use case
    pub started_at: u64,        // start time of the arrival, in nanoseconds
    pub step: usize,            // index of the current step
    pub sent: bool,             // whether the current step's request has been sent
    pub values: Vec<Value>,     // values in the order of the use case's variables
    pub outcomes: Vec<Outcome>, // results of the steps so far, if responses are recorded
}

impl Arrival {
    /// Create an arrival that started at `started_at`, in nanoseconds.
    pub fn new(use_case: usize, started_at: u64, values: Vec<Value>) -> Self {
        Self { use_case, started_at, step: 0, sent: false, values, outcomes: Vec::new() }
    }

    /// Advance to the next step.
    pub fn next_step(&mut self) {
        self.step += 1;
        self.sent = false;
    }

    /// Return the number of recorded responses.
    pub fn response_count(&self) -> u64 {
        self.outcomes.iter().filter(|outcome| matches!(outcome, Outcome::Response { .. })).count() as u64
    }

    /// Record a response.
    pub fn record(&mut self, status: u16, received: u64, body: &[u8]) {
        let body = body[..body.len().min(BODY_LIMIT)].to_vec();
        self.outcomes.push(Outcome::Response { status, received, body });
    }

    /// Return the arrival as JSON for the responses file. A step without a response has a null status.
    pub fn to_json(&self, scenario: &Scenario) -> Value {
        let use_case = &scenario.use_cases[self.use_case];
        let variables = use_case.variables.iter().zip(&self.values);
        let variables: Map<String, Value> =
            variables.map(|(variable, value)| (variable.name.clone(), value.clone())).collect();
        let steps: Vec<Value> = use_case
            .steps
            .iter()
            .zip(&self.outcomes)
            .map(|(step, outcome)| {
                let operation = &scenario.operations[step.operation].name;
                let error = match outcome {
                    Outcome::Response { status, received, body } => {
                        let body = String::from_utf8_lossy(body);
                        return json!({"operation": operation, "status": status, "received_ns": received, "body": body});
                    }
                    Outcome::Fault(fault) => fault.name(),
                    Outcome::Unfinished => "unfinished",
                };
                json!({"operation": operation, "status": null, "body": null, "error": error})
            })
            .collect();
        json!({
            "use_case": use_case.name,
            "came_ns": self.started_at,
            "order": variables.get("order").cloned().unwrap_or(Value::Null),
            "variables": variables,
            "steps": steps,
            "complete": self.step == use_case.steps.len(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scenario() -> Scenario {
        let create = json!({"name": "create order", "method": "POST", "path": "/$item1", "status": 201,
                            "capture": {"order": "/id"}});
        let read = json!({"name": "read order", "method": "GET", "path": "/$order", "status": 200});
        let plan = json!({"use_cases": [{"name": "shop", "rate": 1, "steps": [create, read]}]});
        Scenario::parse(&plan.to_string()).unwrap()
    }

    #[test]
    fn line_contains_all_responses() {
        let mut arrival = Arrival::new(0, 5, vec![json!(7), json!(4711)]);
        arrival.record(201, 8, b"{\"id\":4711}");
        arrival.next_step();
        arrival.record(200, 9, "\u{e4}".as_bytes());
        arrival.next_step();
        let expected = json!({
            "use_case": "shop",
            "came_ns": 5,
            "order": 4711,
            "variables": {"item1": 7, "order": 4711},
            "steps": [
                {"operation": "create order", "status": 201, "received_ns": 8, "body": "{\"id\":4711}"},
                {"operation": "read order", "status": 200, "received_ns": 9, "body": "\u{e4}"},
            ],
            "complete": true,
        });
        assert_eq!(arrival.to_json(&scenario()), expected);
    }

    #[test]
    fn line_of_a_failed_arrival_names_the_fault() {
        let mut arrival = Arrival::new(0, 5, vec![json!(7), Value::Null]);
        arrival.outcomes.push(Outcome::Fault(Fault::Timeout));
        let line = arrival.to_json(&scenario());
        assert_eq!((&line["complete"], &line["order"]), (&json!(false), &Value::Null));
        let expected = json!([{"operation": "create order", "status": null, "body": null, "error": "timeout"}]);
        assert_eq!(line["steps"], expected);
    }

    #[test]
    fn long_bodies_are_truncated() {
        let mut arrival = Arrival::new(0, 5, Vec::new());
        arrival.record(200, 9, &vec![b'a'; 100_000]);
        assert!(matches!(&arrival.outcomes[0], Outcome::Response { body, .. } if body.len() == 65_536));
    }
}
