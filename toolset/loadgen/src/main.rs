//! The program: arguments in, JSON lines out; the exit status says how it ended.

use std::process::ExitCode;

use loadgen::arguments::{Asked, USAGE, parse};
use loadgen::control::run;
use loadgen::play;
use loadgen::reports::Ending;

const BAD_USAGE: u8 = 2;

fn main() -> ExitCode {
    match parse(std::env::args_os().skip(1)) {
        Ok(Asked::Help) => print!("{USAGE}"),
        Ok(Asked::Version) => println!("loadgen {}", env!("CARGO_PKG_VERSION")),
        Ok(Asked::Load(plan)) => return exit(run(*plan)),
        Ok(Asked::Play(scenario)) => return exit(play::run(*scenario)),
        Err(error) => {
            eprintln!("loadgen: {error}");
            return ExitCode::from(BAD_USAGE);
        }
    }
    ExitCode::SUCCESS
}

fn exit(ended: Result<Ending, String>) -> ExitCode {
    let ending = ended.unwrap_or_else(|error| {
        eprintln!("loadgen: {error}");
        Ending::Failed
    });
    ExitCode::from(ending as u8)
}
