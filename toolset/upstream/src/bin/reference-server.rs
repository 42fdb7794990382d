//! A server with known, recorded delays, for testing load generators.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::net::TcpListener;
use std::process::ExitCode;

use lexopt::prelude::*;
use serde_json::json;
use upstream::clock::{MILLISECOND, SECOND, cpu_seconds, now};
use upstream::control::{print_line, serve};
use upstream::server::{Responder, Server};

const USAGE: &str = "\
reference-server [OPTIONS]    respond to every GET with Hello, World! after a known delay

  --port N             port on 127.0.0.1 (0: chosen by the kernel and printed in the ready line)
  --delay-us N         delay of each response, in microseconds (0)
  --slow-every N       make every Nth request slow, for example 50 for 2 % (0: none)
  --slow-us N          delay of slow requests, in microseconds
  --stall-every-ms N   period of stalls in milliseconds, counted from the first request (0: no stalls)
  --stall-ms N         length of the stall at the end of each period, in milliseconds
  --log FILE           write JSON at the end: came_ns and answered_ns of every request (monotonic clock)
commands on standard input: `stats`; end of input, SIGINT and SIGTERM end the program
";

const RESPONSE: &[u8] =
    b"HTTP/1.1 200 OK\r\nServer: reference\r\nContent-Type: text/plain\r\nContent-Length: 13\r\n\r\nHello, World!";

#[derive(Debug, Default)]
struct ReferenceServer {
    delay: u64,
    slow_every: u64,
    slow: u64,
    stall_every: u64,
    stall: u64,
    log: Option<(String, Vec<u64>, Vec<u64>)>, // file, times of requests, times of responses
    first: Option<u64>,
    requests: u64,
    port: u16,
}

impl Responder for ReferenceServer {
    fn due(&mut self, time: u64) -> u64 {
        self.requests += 1;
        self.first.get_or_insert(time);
        if let Some((_, came, _)) = &mut self.log {
            came.push(time);
        }
        if self.slow_every > 0 && self.requests % self.slow_every == 0 { time + self.slow } else { time + self.delay }
    }

    fn write(&mut self, _due: u64, out: &mut Vec<u8>) {
        out.extend_from_slice(RESPONSE);
        if let Some((_, _, answered)) = &mut self.log {
            answered.push(now());
        }
    }

    fn stall(&mut self, time: u64) -> Option<u64> {
        let first = self.first.filter(|_| self.stall_every > 0)?;
        let elapsed = (time - first) % self.stall_every;
        (elapsed >= self.stall_every - self.stall).then(|| time - elapsed + self.stall_every)
    }
}

fn parse_options() -> Result<Option<ReferenceServer>, lexopt::Error> {
    let mut reference = ReferenceServer::default();
    let mut parser = lexopt::Parser::from_env();
    while let Some(argument) = parser.next()? {
        match argument {
            Long("help") => return Ok(None),
            Long("port") => reference.port = parser.value()?.parse()?,
            Long("delay-us") => reference.delay = parser.value()?.parse::<u64>()? * 1000,
            Long("slow-every") => reference.slow_every = parser.value()?.parse()?,
            Long("slow-us") => reference.slow = parser.value()?.parse::<u64>()? * 1000,
            Long("stall-every-ms") => reference.stall_every = parser.value()?.parse::<u64>()? * MILLISECOND,
            Long("stall-ms") => reference.stall = parser.value()?.parse::<u64>()? * MILLISECOND,
            Long("log") => reference.log = Some((parser.value()?.string()?, Vec::new(), Vec::new())),
            _ => return Err(argument.unexpected()),
        }
    }
    Ok(Some(reference))
}

fn run(mut reference: ReferenceServer) -> Result<(), String> {
    let listener = TcpListener::bind(("127.0.0.1", reference.port)).map_err(|error| error.to_string())?;
    let port = listener.local_addr().map_err(|error| error.to_string())?.port();
    let server = Server::new(listener).map_err(|error| error.to_string())?;
    print_line(&json!({"ready": true, "port": port}))?;
    serve(server, &mut reference, |line, reference, server| match line {
        "stats" => print_line(&json!({
            "requests": reference.requests,
            "connections": server.connections(),
            "cpu_seconds": cpu_seconds(),
            "seconds_since_first": reference.first.map(|first| (now() - first) as f64 / SECOND as f64),
        })),
        other => Err(format!("standard input: unknown command {other:?}; expected stats")),
    })?;
    if let Some((path, came, answered)) = &reference.log {
        let file = File::create(path).map_err(|error| format!("{path}: {error}"))?;
        writeln!(BufWriter::new(file), "{}", json!({"came_ns": came, "answered_ns": answered}))
            .map_err(|error| format!("{path}: {error}"))?;
    }
    Ok(())
}

fn main() -> ExitCode {
    match parse_options() {
        Ok(None) => print!("{USAGE}"),
        Ok(Some(reference)) => {
            if let Err(error) = run(reference) {
                eprintln!("reference-server: {error}");
                return ExitCode::FAILURE;
            }
        }
        Err(error) => {
            eprintln!("reference-server: {error}; see --help");
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}
