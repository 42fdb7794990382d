//! The program: arguments in, JSON lines out; the exit status says how it ended.

use std::process::ExitCode;

use loadgen::arguments::{Asked, USAGE, parse};
use loadgen::control::run;
use loadgen::reports::Ending;

const BAD_USAGE: u8 = 2;

fn main() -> ExitCode {
    match parse(std::env::args_os().skip(1)) {
        Ok(Asked::Help) => print!("{USAGE}"),
        Ok(Asked::Version) => println!("loadgen {}", env!("CARGO_PKG_VERSION")),
        Ok(Asked::Load(plan)) => {
            let ending = run(*plan).unwrap_or_else(|error| {
                eprintln!("loadgen: {error}");
                Ending::Failed
            });
            return ExitCode::from(ending as u8);
        }
        Err(error) => {
            eprintln!("loadgen: {error}");
            return ExitCode::from(BAD_USAGE);
        }
    }
    ExitCode::SUCCESS
}
