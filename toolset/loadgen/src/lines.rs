//! JSON lines on standard output.

use std::io::Write;

use serde_json::{Map, Value, json};

use crate::clock::SECOND;

/// Print one line and hand it over at once.
pub fn print(line: &Value) -> Result<(), String> {
    let mut text = line.to_string();
    text.push('\n');
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(|error| format!("standard output: {error}"))
}

/// Nanoseconds in seconds.
pub fn seconds(nanoseconds: u64) -> Value {
    json!(nanoseconds as f64 / SECOND as f64)
}

/// The members of an object.
pub fn as_map(value: Value) -> Map<String, Value> {
    if let Value::Object(map) = value { map } else { Map::new() }
}

/// The line that says whether all connections are established.
pub fn ready(complete: bool, connections: usize, asked: usize, now: u64) -> Value {
    json!({
        "kind": "ready",
        "ready": complete,
        "connections": connections,
        "connections_asked": asked,
        "pid": std::process::id(),
        "now_ns": now,
    })
}
