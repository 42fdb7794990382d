//! A scenario: use cases with their rates, and the dependent requests that each of their arrivals makes.
//!
//! It is read from a file once, checked, and brought into a form from which requests are written quickly.

mod drawing;
mod template;

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use self::drawing::Source;
use self::template::Template;

/// The highest rate of a use case, in arrivals per second.
const MOST_ARRIVALS: f64 = 1e6;

/// All of a plan.
#[derive(Clone, Debug, Default)]
pub struct Scenario {
    pub use_cases: Vec<UseCase>,    // in the plan's order
    pub operations: Vec<Operation>, // what is counted by itself: each operation of each use case
}

/// Steps of one use case that have one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    pub use_case: usize, // place among the use cases
    pub name: String,    // its name
}

/// What one kind of customer does.
#[derive(Clone, Debug)]
pub struct UseCase {
    pub name: String,             // its name
    pub rate: f64,                // arrivals per second
    pub variables: Vec<Variable>, // in the order of their first use
    pub steps: Vec<Step>,         // at least one
}

/// A value of an arrival by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    pub name: String,       // without the dollar
    source: Option<Source>, // None: captured
}

/// One request of an arrival, due when the answer before it is complete.
#[derive(Clone, Debug)]
pub struct Step {
    pub operation: usize,       // place among the operations
    pub status: u16,            // what its answer's status must be
    pub captures: Vec<Capture>, // what is taken from the answer
    method: String,
    path: Template,
    body: Option<Template>,
}

/// A value that is taken from an answer.
#[derive(Clone, Debug)]
pub struct Capture {
    pub variable: usize, // place among the use case's variables
    pub pointer: String, // A JSON pointer (RFC 6901) into the body
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
    /// The plan in a text; an error names the use case and step where there is one.
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
            return Err("is there twice".into());
        }
        if !(entry.rate > 0.0 && entry.rate <= MOST_ARRIVALS) {
            return Err(format!("rate {}: more than 0 and at most a million arrivals per second", entry.rate));
        }
        if entry.steps.is_empty() {
            return Err("steps is empty".into());
        }
        let mut made = UseCase { name: entry.name, rate: entry.rate, variables: Vec::new(), steps: Vec::new() };
        for step in entry.steps {
            let name = step.name.clone();
            let operation = Operation { use_case: self.use_cases.len(), name: name.clone() };
            let operation = place_of(&mut self.operations, operation);
            let step = made.step(operation, step).map_err(|error| format!("step {name:?}: {error}"))?;
            made.steps.push(step);
        }
        self.use_cases.push(made);
        Ok(())
    }
}

impl UseCase {
    fn step(&mut self, operation: usize, entry: StepEntry) -> Result<Step, String> {
        if entry.method.is_empty() || !entry.method.bytes().all(|byte| byte.is_ascii_uppercase()) {
            return Err(format!("method {:?}: letters are expected", entry.method));
        }
        if entry.method == "HEAD" || !(200..1000).contains(&entry.status) {
            return Err(format!("{} with status {} has no answer to wait for", entry.method, entry.status));
        }
        if !entry.path.starts_with('/') || entry.path.bytes().any(|byte| !byte.is_ascii_graphic()) {
            return Err(format!("path {:?}: no request target", entry.path));
        }
        let path = Template::text(&entry.path, &mut |name| self.known(name))?;
        let body = entry.body.map(|body| Template::json(&body, &mut |name| self.known(name))).transpose()?;
        let mut captures = Vec::new();
        for (name, pointer) in entry.capture {
            if Source::of(&name).is_some() || !(pointer.is_empty() || pointer.starts_with('/')) {
                return Err(format!("capture {name:?} from {pointer:?}: a name that is not drawn and a JSON pointer"));
            }
            let variable = place_of(&mut self.variables, Variable { name, source: None });
            captures.push(Capture { variable, pointer });
        }
        Ok(Step { operation, status: entry.status, captures, method: entry.method, path, body })
    }

    /// The place of a variable that is used.
    fn known(&mut self, name: &str) -> Result<usize, String> {
        if let Some(source) = Source::of(name) {
            return Ok(place_of(&mut self.variables, Variable { name: name.to_owned(), source: Some(source) }));
        }
        self.variables
            .iter()
            .position(|variable| variable.name == name)
            .ok_or_else(|| format!("${name} is neither drawn nor captured by a step before"))
    }
}

/// Where it stands, at the end if it was not there.
fn place_of<T: PartialEq>(all: &mut Vec<T>, one: T) -> usize {
    all.iter().position(|other| *other == one).unwrap_or_else(|| {
        all.push(one);
        all.len() - 1
    })
}

impl Step {
    /// Write the request, in place of what is in `out`; `headers` are lines with their ends, `body` is memory to use.
    pub fn write(&self, headers: &str, values: &[Value], out: &mut Vec<u8>, body: &mut String) {
        use std::io::Write;
        let write = "memory takes what is written";
        body.clear();
        self.path.write(values, body);
        out.clear();
        write!(out, "{} {body} HTTP/1.1\r\n{headers}", self.method).expect(write);
        if let Some(template) = &self.body {
            body.clear();
            template.write(values, body);
            write!(out, "Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}", body.len()).expect(write);
        } else {
            out.extend_from_slice(b"\r\n");
        }
    }

    /// Take from an answer's body what later steps need; false where it is not there or no text for a path.
    pub fn capture(&self, body: &[u8], values: &mut [Value]) -> bool {
        if self.captures.is_empty() {
            return true;
        }
        let Ok(document) = serde_json::from_slice::<Value>(body) else { return false };
        self.captures.iter().all(|capture| {
            let found = document.pointer(&capture.pointer).filter(|value| match value {
                Value::Number(_) => true,
                Value::String(text) => !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic()),
                _ => false,
            });
            if let Some(value) = found {
                values[capture.variable] = value.clone();
            }
            found.is_some()
        })
    }
}

#[cfg(test)]
mod tests;
