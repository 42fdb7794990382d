//! A scenario: use cases with their rates, and the dependent requests of each arrival.
//!
//! A scenario is parsed and checked before the load, so writing a request during the load takes little time.

mod template;
mod variables;

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use self::template::Template;
use self::variables::{DrawnValues, Source};
use crate::random::Random;

/// Maximum rate of a use case, in arrivals per second.
const MAX_RATE: f64 = 1e6;

/// A parsed scenario.
#[derive(Clone, Debug, Default)]
pub struct Scenario {
    pub use_cases: Vec<UseCase>,    // in file order
    pub operations: Vec<Operation>, // operations of all use cases; each has separate counts
}

/// All steps of a use case that have the same name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    pub use_case: usize, // index of the use case
    pub name: String,
}

/// A sequence of dependent requests. Arrivals (executions of the sequence) start at a given rate.
#[derive(Clone, Debug)]
pub struct UseCase {
    pub name: String,
    pub rate: f64,                // arrivals per second
    pub variables: Vec<Variable>, // in the order of their first use
    pub steps: Vec<Step>,         // at least one
}

/// A named value that is drawn or captured for each arrival.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    pub name: String,       // without the dollar sign
    source: Option<Source>, // None for a captured value
}

/// A request within a use case. It is due as soon as the response to the previous step is complete.
#[derive(Clone, Debug)]
pub struct Step {
    pub operation: usize,            // index of the operation
    pub status: u16,                 // expected status of the response
    pub captures: Vec<ValueCapture>, // values to extract from the response
    method: String,
    path: Template,
    body: Option<Template>,
}

/// A value to extract from a response.
#[derive(Clone, Debug)]
pub struct ValueCapture {
    pub variable: usize, // index of the variable in the use case
    pub pointer: String, // JSON pointer (RFC 6901) into the body
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    use_cases: Vec<UseCaseEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct UseCaseEntry {
    name: String,
    rate: f64,
    steps: Vec<StepEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StepEntry {
    name: String,
    method: String,
    path: String,
    body: Option<Value>,
    status: u16,
    #[serde(default)]
    capture: BTreeMap<String, String>,
}

impl Scenario {
    /// Parse and check a scenario. An error names the use case and the step.
    pub fn parse(text: &str) -> Result<Self, String> {
        let file: File = serde_json::from_str(text).map_err(|error| error.to_string())?;
        if file.use_cases.is_empty() {
            return Err("use_cases is empty".into());
        }
        let mut scenario = Self::default();
        for entry in file.use_cases {
            let name = entry.name.clone();
            scenario.add(entry).map_err(|error| format!("use case {name:?}: {error}"))?;
        }
        Ok(scenario)
    }

    fn add(&mut self, entry: UseCaseEntry) -> Result<(), String> {
        if self.use_cases.iter().any(|other| other.name == entry.name) {
            return Err("another use case has the same name".into());
        }
        if !(entry.rate > 0.0 && entry.rate <= MAX_RATE) {
            return Err(format!(
                "rate {}: expected more than 0 and at most {MAX_RATE} arrivals per second",
                entry.rate
            ));
        }
        if entry.steps.is_empty() {
            return Err("steps is empty".into());
        }
        let mut use_case = UseCase { name: entry.name, rate: entry.rate, variables: Vec::new(), steps: Vec::new() };
        for step in entry.steps {
            let name = step.name.clone();
            let operation = Operation { use_case: self.use_cases.len(), name: name.clone() };
            let operation = find_or_push(&mut self.operations, operation);
            let step = use_case.parse_step(operation, step).map_err(|error| format!("step {name:?}: {error}"))?;
            use_case.steps.push(step);
        }
        self.use_cases.push(use_case);
        Ok(())
    }
}

impl UseCase {
    /// Draw the values of an arrival's variables. Captured variables are null at first.
    pub fn draw(&self, random: &mut Random) -> Vec<Value> {
        let mut drawn = DrawnValues::default();
        self.variables
            .iter()
            .map(|variable| variable.source.map_or(Value::Null, |source| drawn.draw(source, random)))
            .collect()
    }

    fn parse_step(&mut self, operation: usize, entry: StepEntry) -> Result<Step, String> {
        if entry.method.is_empty() || !entry.method.bytes().all(|byte| byte.is_ascii_uppercase()) {
            return Err(format!("method {:?}: expected uppercase letters", entry.method));
        }
        if entry.method == "HEAD" || !(200..1000).contains(&entry.status) {
            return Err(format!(
                "{} with status {}: expected a method other than HEAD, and a status from 200 to 999",
                entry.method, entry.status
            ));
        }
        if !entry.path.starts_with('/') || entry.path.bytes().any(|byte| !byte.is_ascii_graphic()) {
            return Err(format!(
                "path {:?}: expected a request target that starts with / and has no spaces",
                entry.path
            ));
        }
        let path = Template::text(&entry.path, &mut |name| self.variable_index(name))?;
        let body = entry.body.map(|body| Template::json(&body, &mut |name| self.variable_index(name))).transpose()?;
        let mut captures = Vec::new();
        for (name, pointer) in entry.capture {
            if Source::from_name(&name).is_some() || !(pointer.is_empty() || pointer.starts_with('/')) {
                return Err(format!(
                    "capture {name:?} from {pointer:?}: expected a JSON pointer and a variable that is not drawn"
                ));
            }
            let variable = find_or_push(&mut self.variables, Variable { name, source: None });
            captures.push(ValueCapture { variable, pointer });
        }
        Ok(Step { operation, status: entry.status, captures, method: entry.method, path, body })
    }

    /// Return the index of the variable that a placeholder names. Add a drawn variable when it is first used.
    fn variable_index(&mut self, name: &str) -> Result<usize, String> {
        if let Some(source) = Source::from_name(name) {
            return Ok(find_or_push(&mut self.variables, Variable { name: name.to_owned(), source: Some(source) }));
        }
        self.variables
            .iter()
            .position(|variable| variable.name == name)
            .ok_or_else(|| format!("${name} is neither drawn nor captured by an earlier step"))
    }
}

/// Return the index of an item. Append the item if it is new.
fn find_or_push<T: PartialEq>(items: &mut Vec<T>, item: T) -> usize {
    items.iter().position(|other| *other == item).unwrap_or_else(|| {
        items.push(item);
        items.len() - 1
    })
}

impl Step {
    /// Replace the contents of `out` with the request, given complete header lines and a reusable scratch buffer.
    pub fn write(&self, headers: &str, values: &[Value], out: &mut Vec<u8>, scratch: &mut String) {
        use std::io::Write;
        let write = "writing to memory cannot fail";
        scratch.clear();
        self.path.write(values, scratch);
        out.clear();
        write!(out, "{} {scratch} HTTP/1.1\r\n{headers}", self.method).expect(write);
        if let Some(template) = &self.body {
            scratch.clear();
            template.write(values, scratch);
            let length = scratch.len();
            write!(out, "Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{scratch}").expect(write);
        } else {
            out.extend_from_slice(b"\r\n");
        }
    }

    /// Capture the values that later steps need. Return false if a value is missing or cannot be used in a path.
    pub fn capture(&self, body: &[u8], values: &mut [Value]) -> bool {
        if self.captures.is_empty() {
            return true;
        }
        let Ok(document) = serde_json::from_slice::<Value>(body) else { return false };
        self.captures.iter().all(|capture| {
            let value = document.pointer(&capture.pointer).filter(|value| match value {
                Value::Number(_) => true,
                Value::String(text) => !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic()),
                _ => false,
            });
            if let Some(value) = value {
                values[capture.variable] = value.clone();
            }
            value.is_some()
        })
    }
}

#[cfg(test)]
mod tests;
