//! One arrival of a use case: what was drawn for it, how far it has come, and its line for `--answers`.

use serde_json::{Map, Value, json};

use crate::scenario::Scenario;
use crate::tally::Fault;

/// The most bytes of a body that a line holds.
const BODY_LIMIT: usize = 64 * 1024;

/// What became of a step.
#[derive(Debug)]
pub enum Outcome {
    /// A complete answer.
    Answer {
        /// Its status.
        status: u16,
        /// When its last byte came, in nanoseconds.
        received: u64,
        /// As much of it as a line holds.
        body: Vec<u8>,
    },
    /// None, because of this.
    Fault(Fault),
    Unfinished, // none so far, and nobody waits any more
}

/// An arrival under way, or that has ended.
#[derive(Debug)]
pub struct Arrival {
    pub use_case: usize,        // place among the use cases
    pub came: u64,              // when it came, in nanoseconds
    pub step: usize,            // place of the step that is due
    pub sent: bool,             // whether that has been sent
    pub values: Vec<Value>,     // of the use case's variables
    pub outcomes: Vec<Outcome>, // of the steps so far; empty unless they are kept
}

impl Arrival {
    /// One that came at `came`.
    pub fn new(use_case: usize, came: u64, values: Vec<Value>) -> Self {
        Self { use_case, came, step: 0, sent: false, values, outcomes: Vec::new() }
    }

    /// Its next step is due.
    pub fn go_on(&mut self) {
        self.step += 1;
        self.sent = false;
    }

    /// How many answers its line holds.
    pub fn answers(&self) -> u64 {
        self.outcomes.iter().filter(|outcome| matches!(outcome, Outcome::Answer { .. })).count() as u64
    }

    /// Keep an answer for its line.
    pub fn keep(&mut self, status: u16, received: u64, body: &[u8]) {
        let body = body[..body.len().min(BODY_LIMIT)].to_vec();
        self.outcomes.push(Outcome::Answer { status, received, body });
    }

    /// Its line: a step that has no answer has no status.
    pub fn line(&self, scenario: &Scenario) -> Value {
        let use_case = &scenario.use_cases[self.use_case];
        let named = use_case.variables.iter().zip(&self.values);
        let variables: Map<String, Value> =
            named.map(|(variable, value)| (variable.name.clone(), value.clone())).collect();
        let steps: Vec<Value> = use_case
            .steps
            .iter()
            .zip(&self.outcomes)
            .map(|(step, outcome)| {
                let operation = &scenario.operations[step.operation].name;
                let error = match outcome {
                    Outcome::Answer { status, received, body } => {
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
            "came_ns": self.came,
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
    fn a_complete_arrival_holds_all_answers() {
        let mut arrival = Arrival::new(0, 5, vec![json!(7), json!(4711)]);
        arrival.keep(201, 8, b"{\"id\":4711}");
        arrival.go_on();
        arrival.keep(200, 9, "\u{e4}".as_bytes());
        arrival.go_on();
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
        assert_eq!(arrival.line(&scenario()), expected);
    }

    #[test]
    fn an_arrival_that_was_given_up_says_why_and_has_no_order() {
        let mut arrival = Arrival::new(0, 5, vec![json!(7), Value::Null]);
        arrival.outcomes.push(Outcome::Fault(Fault::Timeout));
        let line = arrival.line(&scenario());
        assert_eq!((&line["complete"], &line["order"]), (&json!(false), &Value::Null));
        let expected = json!([{"operation": "create order", "status": null, "body": null, "error": "timeout"}]);
        assert_eq!(line["steps"], expected);
    }

    #[test]
    fn of_a_long_body_a_line_holds_64_kib() {
        let mut arrival = Arrival::new(0, 5, Vec::new());
        arrival.keep(200, 9, &vec![b'a'; 100_000]);
        assert!(matches!(&arrival.outcomes[0], Outcome::Answer { body, .. } if body.len() == 65_536));
    }
}
