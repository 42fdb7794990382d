//! A server whose every delay is known and written down: what load generators are tried on.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::net::TcpListener;
use std::process::ExitCode;

use lexopt::prelude::*;
use serde_json::json;
use upstream::clock::{MILLISECOND, SECOND, cpu_seconds, now};
use upstream::control::{say, serve};
use upstream::server::{Answers, Server};

const USAGE: &str = "\
reference-server [OPTIONS]    answers every GET with Hello, World!, as late as asked

  --port N             on 127.0.0.1 (0: the kernel chooses; the ready line tells)
  --delay-us N         before every answer (0)
  --slow-every N       each Nth request is slow instead: 50 are 2 % (0: none)
  --slow-us N          how slow
  --stall-every-ms N   from the first request on, stand still at the end of every period of N ms (0: never)
  --stall-ms N         for so long
  --log FILE           at the end write JSON: came_ns and answered_ns of every request, monotonic clock
lines on standard input: `stats`; its end, SIGINT or SIGTERM end the program
";

const PLAIN: &[u8] =
    b"HTTP/1.1 200 OK\r\nServer: reference\r\nContent-Type: text/plain\r\nContent-Length: 13\r\n\r\nHello, World!";

#[derive(Debug, Default)]
struct Reference {
    delay: u64,
    slow_every: u64,
    slow: u64,
    stall_every: u64,
    stall: u64,
    log: Option<(String, Vec<u64>, Vec<u64>)>, // file, came, answered
    first: Option<u64>,
    requests: u64,
    port: u16,
}

impl Answers for Reference {
    fn due(&mut self, time: u64) -> u64 {
        self.requests += 1;
        self.first.get_or_insert(time);
        if let Some((_, came, _)) = &mut self.log {
            came.push(time);
        }
        if self.slow_every > 0 && self.requests % self.slow_every == 0 { time + self.slow } else { time + self.delay }
    }

    fn write(&mut self, _due: u64, out: &mut Vec<u8>) {
        out.extend_from_slice(PLAIN);
        if let Some((_, _, answered)) = &mut self.log {
            answered.push(now());
        }
    }

    fn stall(&mut self, time: u64) -> Option<u64> {
        let first = self.first.filter(|_| self.stall_every > 0)?;
        let within = (time - first) % self.stall_every;
        (within >= self.stall_every - self.stall).then(|| time - within + self.stall_every)
    }
}

fn options() -> Result<Option<Reference>, lexopt::Error> {
    let mut reference = Reference::default();
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

fn run(mut reference: Reference) -> Result<(), String> {
    let listener = TcpListener::bind(("127.0.0.1", reference.port)).map_err(|error| error.to_string())?;
    let port = listener.local_addr().map_err(|error| error.to_string())?.port();
    let server = Server::new(listener).map_err(|error| error.to_string())?;
    say(&json!({"ready": true, "port": port}))?;
    serve(server, &mut reference, |line, reference, server| match line {
        "stats" => say(&json!({
            "requests": reference.requests,
            "connections": server.connections(),
            "cpu_seconds": cpu_seconds(),
            "seconds_since_first": reference.first.map(|first| (now() - first) as f64 / SECOND as f64),
        })),
        other => Err(format!("{other:?} on standard input: stats is expected")),
    })?;
    if let Some((path, came, answered)) = &reference.log {
        let file = File::create(path).map_err(|error| format!("{path}: {error}"))?;
        writeln!(BufWriter::new(file), "{}", json!({"came_ns": came, "answered_ns": answered}))
            .map_err(|error| format!("{path}: {error}"))?;
    }
    Ok(())
}

fn main() -> ExitCode {
    match options() {
        Ok(None) => print!("{USAGE}"),
        Ok(Some(reference)) => {
            if let Err(error) = run(reference) {
                eprintln!("reference-server: {error}");
                return ExitCode::FAILURE;
            }
        }
        Err(error) => {
            eprintln!("reference-server: {error}; --help shows the options");
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}
