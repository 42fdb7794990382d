//! The slow upstream of the fan-out test: every GET is answered with a number, no earlier than asked, and counted.

use std::net::TcpListener;
use std::process::ExitCode;

use lexopt::prelude::*;
use serde_json::json;
use upstream::clock::{MILLISECOND, cpu_seconds};
use upstream::control::{say, serve};
use upstream::server::{Answers, Server};

const USAGE: &str = "\
upstream [OPTIONS]    answers every GET with a number after a delay, and counts

  --bind ADDRESS      (127.0.0.1)
  --port N            (0: the kernel chooses; the ready line tells)
  --delay-ms N        until an answer goes out (5)
  --seed N            of the numbers (1)
lines on standard input: `delay MS`, `reset`, `stats`; its end, SIGINT or SIGTERM end the program
";
const LARGEST: u64 = 10_000;
const LONGEST_DELAY: u64 = 60_000;

#[derive(Debug)]
struct Options {
    bind: String,
    port: u16,
    delay: u64,
    seed: u64,
}

/// What was called; the counts begin anew with `reset`, requests under way stay under way.
#[derive(Debug)]
struct Upstream {
    delay: u64, // nanoseconds
    random: u64,
    calls: u64,
    sum: u64,
    under_way: u64,
    most: u64,
    accepted: u64,
}

impl Answers for Upstream {
    fn due(&mut self, time: u64) -> u64 {
        self.calls += 1;
        self.under_way += 1;
        self.most = self.most.max(self.under_way);
        time + self.delay
    }

    fn write(&mut self, _due: u64, out: &mut Vec<u8>) {
        self.under_way -= 1;
        let value = 1 + self.next() % LARGEST;
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
    /// `SplitMix64`.
    fn next(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn line(&mut self, line: &str, server: &Server) -> Result<(), String> {
        match line.split_once(' ').unwrap_or((line, "")) {
            ("delay", text) => {
                let delay = text.trim().parse::<u64>().ok().filter(|&delay| delay <= LONGEST_DELAY);
                self.delay = delay.ok_or(format!("delay {text}: milliseconds up to {LONGEST_DELAY} are expected"))?
                    * MILLISECOND;
            }
            ("reset", "") => {
                (self.calls, self.sum, self.most) = (0, 0, self.under_way);
            }
            ("stats", "") => say(&json!({
                "calls": self.calls,
                "sum": self.sum,
                "max_concurrent": self.most,
                "in_flight": self.under_way,
                "connections": server.connections(),
                "connections_accepted": self.accepted,
                "cpu_seconds": cpu_seconds(),
            }))?,
            _ => return Err(format!("{line:?} on standard input: delay MS, reset or stats is expected")),
        }
        Ok(())
    }
}

fn options() -> Result<Option<Options>, lexopt::Error> {
    let mut options = Options { bind: "127.0.0.1".into(), port: 0, delay: 5 * MILLISECOND, seed: 1 };
    let mut parser = lexopt::Parser::from_env();
    while let Some(argument) = parser.next()? {
        match argument {
            Long("help") => return Ok(None),
            Long("bind") => options.bind = parser.value()?.string()?,
            Long("port") => options.port = parser.value()?.parse()?,
            Long("delay-ms") => {
                let delay: u64 = parser.value()?.parse()?;
                options.delay = delay.min(LONGEST_DELAY) * MILLISECOND;
            }
            Long("seed") => options.seed = parser.value()?.parse()?,
            _ => return Err(argument.unexpected()),
        }
    }
    Ok(Some(options))
}

fn run(options: &Options) -> Result<(), String> {
    let address = (options.bind.as_str(), options.port);
    let listener = TcpListener::bind(address).map_err(|error| format!("{}:{}: {error}", options.bind, options.port))?;
    let port = listener.local_addr().map_err(|error| error.to_string())?.port();
    let server = Server::new(listener).map_err(|error| error.to_string())?;
    say(&json!({"ready": true, "port": port}))?;
    let mut upstream =
        Upstream { delay: options.delay, random: options.seed, calls: 0, sum: 0, under_way: 0, most: 0, accepted: 0 };
    serve(server, &mut upstream, |line, upstream, server| upstream.line(line, server))
}

fn main() -> ExitCode {
    match options() {
        Ok(None) => print!("{USAGE}"),
        Ok(Some(options)) => {
            if let Err(error) = run(&options) {
                eprintln!("upstream: {error}");
                return ExitCode::FAILURE;
            }
        }
        Err(error) => {
            eprintln!("upstream: {error}; --help shows the options");
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}
