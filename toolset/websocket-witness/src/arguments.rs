//! Parses the command line.

use std::time::Duration;

use lexopt::prelude::{Long, Value, ValueExt};

/// Parameters of the load.
pub struct Arguments {
    /// Address of the server, as in `ws://127.0.0.1:8080/ws`.
    pub url: String,
    /// Number of connections.
    pub connections: usize,
    /// Messages in flight on each connection.
    pub depth: usize,
    /// Number of threads.
    pub threads: usize,
    /// Duration of the load.
    pub duration: Duration,
    /// Seed of the messages.
    pub seed: u64,
}

impl Arguments {
    /// Parse the arguments. All numbers except the seed are at least 1.
    pub fn parse(mut parser: lexopt::Parser) -> Result<Arguments, lexopt::Error> {
        let mut found =
            Arguments { url: String::new(), connections: 1, depth: 1, threads: 1, duration: Duration::ZERO, seed: 0 };
        while let Some(argument) = parser.next()? {
            match argument {
                Long("connections") => found.connections = parser.value()?.parse()?,
                Long("depth") => found.depth = parser.value()?.parse()?,
                Long("threads") => found.threads = parser.value()?.parse()?,
                Long("duration") => found.duration = Duration::from_secs(parser.value()?.parse()?),
                Long("seed") => found.seed = parser.value()?.parse()?,
                Value(url) => found.url = url.string()?,
                other => return Err(other.unexpected()),
            }
        }
        if [found.connections, found.depth, found.threads].contains(&0) || found.duration.is_zero() {
            return Err("expected --connections, --depth, --threads and --duration of at least 1".into());
        }
        if found.url.starts_with("ws://") { Ok(found) } else { Err("expected a URL that begins with ws://".into()) }
    }
}
