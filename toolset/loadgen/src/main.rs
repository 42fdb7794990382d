//! An HTTP/1.1 load generator for one server. It measures latency from the intended send time.
//!
//! It takes arguments and prints JSON lines; the exit status gives the reason for the end of the load. `control` runs
//! the protocol on standard input and output. Each `worker` thread generates a share of the load: a closed loop, an
//! open loop, or a scenario (`scenario_runner`).

mod arguments;
mod arrival;
mod clock;
mod commands;
mod connection;
mod control;
mod coordination;
mod distribution;
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
mod worker;

use std::process::ExitCode;

use clap::Parser;

use crate::arguments::{Arguments, Plan};
use crate::coordination::ExitReason;

const BAD_USAGE: u8 = 2; // the same as clap's

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
