//! A load generator for an HTTP/1.1, HTTP/2 or WebSocket server. It measures latency from the intended send time.
//!
//! The program prints JSON lines, and the exit status shows why the load ended. `control` communicates on standard
//! input and output. Each `worker` thread generates a share of the load: a closed loop, an open loop, or a scenario
//! (`scenario_runner`).

mod arguments;
mod arrival;
mod clock;
mod commands;
mod connection;
mod control;
mod coordination;
mod distribution;
mod http2;
mod random;
mod requests;
mod response;
mod sampling;
mod scenario;
mod scenario_runner;
mod schedule;
mod system;
mod tally;
mod transport;
mod websocket;
mod worker;

use std::process::ExitCode;

use clap::Parser;

use crate::arguments::{Arguments, Plan};
use crate::coordination::ExitReason;

const BAD_USAGE: u8 = 2; // clap's exit status for usage errors

fn main() -> ExitCode {
    let plan = match Plan::new(Arguments::parse()) {
        Ok(plan) => plan,
        Err(error) => {
            eprintln!("loadgen: {error}");
            return ExitCode::from(BAD_USAGE);
        }
    };
    let ending = control::run(plan).unwrap_or_else(|error| {
        eprintln!("loadgen: {error}");
        ExitReason::Failed
    });
    ExitCode::from(ending as u8)
}
