//! A WebSocket client that keeps a fixed number of messages in flight on each connection and compares every echo.
//!
//! Usage: websocket-witness --connections N --depth N --threads N --duration SECONDS --seed N URL
//!
//! It prints a line of JSON with the same keys as wrk's report (toolset/wrk/report.lua).

mod arguments;
mod connection;

use std::io::{Error, ErrorKind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Barrier;
use tokio::task::JoinSet;

use crate::arguments::Arguments;
use crate::connection::{Counts, run};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments = Arguments::parse(lexopt::Parser::from_env())?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(arguments.threads).enable_all().build()?;
    let (counts, elapsed) = runtime.block_on(load(Arc::new(arguments)));
    println!(
        "{}",
        serde_json::json!({
            "duration_us": u64::try_from(elapsed.as_micros())?,
            "requests": counts.echoes + counts.different,
            "bytes": counts.bytes,
            "cpu_seconds": cpu_seconds()?,
            "errors": {
                "connect": counts.connect, "read": counts.read, "write": counts.write, "timeout": 0,
                "status": counts.different,
            },
        })
    );
    Ok(())
}

/// Open all connections, run the load, and return the sum of the counts and the time between start and end.
async fn load(arguments: Arc<Arguments>) -> (Counts, Duration) {
    let start = Arc::new(Barrier::new(arguments.connections + 1));
    let mut connections = JoinSet::new();
    for number in 0..arguments.connections {
        connections.spawn(run(Arc::clone(&arguments), number as u64, Arc::clone(&start)));
    }
    start.wait().await;
    let started = Instant::now();
    let mut total = Counts::default();
    while let Some(joined) = connections.join_next().await {
        total += joined.unwrap_or_default();
    }
    (total, started.elapsed())
}

/// Return the CPU time of this process, user and system, in seconds. /proc counts it in units of 10 ms.
fn cpu_seconds() -> std::io::Result<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let after_name = stat.rsplit(") ").next().unwrap_or_default();
    let ticks = after_name.split(' ').skip(11).take(2).map(str::parse::<f64>);
    ticks.sum::<Result<f64, _>>().map(|sum| sum / 100.0).map_err(|error| Error::new(ErrorKind::InvalidData, error))
}
