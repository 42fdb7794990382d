//! The slow upstream server for the fan-out test. It responds to each GET with a random number after a delay, and
//! counts the calls.

use std::net::TcpListener;
use std::process::ExitCode;

use lexopt::prelude::*;
use serde_json::json;
use upstream::clock::{MILLISECOND, cpu_seconds};
use upstream::control::{print_line, serve};
use upstream::server::{Responder, Server};

const USAGE: &str = "\
upstream [OPTIONS]    respond to every GET with a number after a delay, and count the requests

  --bind ADDRESS      address to listen on (127.0.0.1)
  --port N            port to listen on (0: chosen by the kernel and printed in the ready line)
  --delay-ms N        delay of each response, in milliseconds (5)
  --seed N            seed of the numbers (1)
commands on standard input: `delay MS`, `reset`, `stats`; end of input, SIGINT and SIGTERM end the program
";
const MAX_NUMBER: u64 = 10_000;
const MAX_DELAY_MS: u64 = 60_000;

#[derive(Debug)]
struct Options {
    bind: String,
    port: u16,
    delay: u64,
    seed: u64,
}

/// A responder that delays all responses equally. The command `reset` resets `calls`, `sum` and `max_in_flight`.
#[derive(Debug)]
struct Upstream {
    delay: u64, // nanoseconds
    random: u64,
    calls: u64,
    sum: u64,
    in_flight: u64,
    max_in_flight: u64,
    accepted: u64,
}

impl Responder for Upstream {
    fn due(&mut self, time: u64) -> u64 {
        self.calls += 1;
        self.in_flight += 1;
        self.max_in_flight = self.max_in_flight.max(self.in_flight);
        time + self.delay
    }

    fn write(&mut self, _due: u64, out: &mut Vec<u8>) {
        self.in_flight -= 1;
        let value = 1 + self.next() % MAX_NUMBER;
        self.sum += value;
        let digits = value.to_string();
        out.extend_from_slice(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: ");
        out.extend_from_slice(digits.len().to_string().as_bytes());
        out.extend_from_slice(b"\r\n\r\n");
        out.extend_from_slice(digits.as_bytes());
    }

    fn accepted(&mut self) {
        self.accepted += 1;
    }
}

impl Upstream {
    /// Return the next `SplitMix64` number.
    fn next(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn execute(&mut self, line: &str, server: &Server) -> Result<(), String> {
        match line.split_once(' ').unwrap_or((line, "")) {
            ("delay", text) => {
                let delay = text.trim().parse::<u64>().ok().filter(|&delay| delay <= MAX_DELAY_MS);
                self.delay = delay
                    .ok_or(format!("standard input: delay {text}: expected 0 to {MAX_DELAY_MS} milliseconds"))?
                    * MILLISECOND;
            }
            ("reset", "") => {
                (self.calls, self.sum, self.max_in_flight) = (0, 0, self.in_flight);
            }
            ("stats", "") => print_line(&json!({
                "calls": self.calls,
                "sum": self.sum,
                "max_concurrent": self.max_in_flight,
                "in_flight": self.in_flight,
                "connections": server.connections(),
                "connections_accepted": self.accepted,
                "cpu_seconds": cpu_seconds(),
            }))?,
            _ => return Err(format!("standard input: unknown command {line:?}; expected delay MS, reset or stats")),
        }
        Ok(())
    }
}

fn parse_options() -> Result<Option<Options>, lexopt::Error> {
    let mut options = Options { bind: "127.0.0.1".into(), port: 0, delay: 5 * MILLISECOND, seed: 1 };
    let mut parser = lexopt::Parser::from_env();
    while let Some(argument) = parser.next()? {
        match argument {
            Long("help") => return Ok(None),
            Long("bind") => options.bind = parser.value()?.string()?,
            Long("port") => options.port = parser.value()?.parse()?,
            Long("delay-ms") => {
                let delay: u64 = parser.value()?.parse()?;
                options.delay = delay.min(MAX_DELAY_MS) * MILLISECOND;
            }
            Long("seed") => options.seed = parser.value()?.parse()?,
            _ => return Err(argument.unexpected()),
        }
    }
    Ok(Some(options))
}

fn run(options: &Options) -> Result<(), String> {
    let address = (options.bind.as_str(), options.port);
    let listener = TcpListener::bind(address)
        .map_err(|error| format!("cannot listen on {}:{}: {error}", options.bind, options.port))?;
    let port = listener.local_addr().map_err(|error| error.to_string())?.port();
    let server = Server::new(listener).map_err(|error| error.to_string())?;
    print_line(&json!({"ready": true, "port": port}))?;
    let mut upstream = Upstream {
        delay: options.delay,
        random: options.seed,
        calls: 0,
        sum: 0,
        in_flight: 0,
        max_in_flight: 0,
        accepted: 0,
    };
    serve(server, &mut upstream, |line, upstream, server| upstream.execute(line, server))
}

fn main() -> ExitCode {
    match parse_options() {
        Ok(None) => print!("{USAGE}"),
        Ok(Some(options)) => {
            if let Err(error) = run(&options) {
                eprintln!("upstream: {error}");
                return ExitCode::FAILURE;
            }
        }
        Err(error) => {
            eprintln!("upstream: {error}; see --help");
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}
