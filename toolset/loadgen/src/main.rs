//! An HTTP/1.1 load generator for one server: closed loop, open loop or scenario, latency from the intended send time.
//!
//! Arguments in, JSON lines out; the exit status says how it ended. `control` talks with whoever started it, `worker` makes
//! the load, one thread each. What is due and what an answer means for it is the one thing in which loads differ: a
//! scenario's arrivals are in `course`.

mod arguments;
mod arrival;
mod arrivals;
mod clock;
mod connection;
mod control;
mod course;
mod distribution;
mod limits;
mod listening;
mod reports;
mod requests;
mod response;
mod sample;
mod scenario;
mod tally;
mod worker;

use std::process::ExitCode;

use clap::Parser;

use crate::arguments::{Arguments, Plan};
use crate::reports::Ending;

const BAD_USAGE: u8 = 2; // clap's own, too

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
        Ending::Failed
    });
    ExitCode::from(ending as u8)
}
