//! The command line, parsed once into what a load is.

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Parser;

use crate::arrivals::Process;
use crate::clock::SECOND;
use crate::requests::Requests;
use crate::response::headers;
use crate::scenario::Scenario;

/// An HTTP/1.1 load on one server: a closed loop, with --rate an open one, with --scenario use cases that arrive.
#[derive(Clone, Debug, Parser)]
#[command(name = "loadgen", version)]
pub struct Arguments {
    /// What is asked for with GET; with --requests and --scenario the server alone
    #[arg(value_name = "URL")]
    pub url: String,
    /// Connections over all threads
    #[arg(long, value_name = "N", default_value = "1", value_parser = positive)]
    pub connections: usize,
    /// Threads, each with its share of connections and rate
    #[arg(long, value_name = "N", default_value = "1", value_parser = positive)]
    pub threads: usize,
    /// Requests of a closed loop on a connection at once, sent in one batch, as wrk does
    #[arg(long, value_name = "N", default_value = "1", value_parser = positive)]
    pub depth: usize,
    /// How long to send; without it until SIGINT or `stop`
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub duration: Option<u64>,
    /// Open loop: so many requests per second over all threads
    #[arg(long, value_name = "R", conflicts_with = "depth")]
    #[arg(value_parser = |text: &str| within(text, f64::MIN_POSITIVE, 1e8))]
    pub rate: Option<f64>,
    /// When the requests of an open loop are due
    #[arg(long, value_name = "KIND", default_value = "poisson", requires = "rate")]
    pub arrivals: Process,
    /// A JSON line a request: each one sent is drawn from these
    #[arg(long, value_name = "FILE")]
    pub requests: Option<PathBuf>,
    /// Use cases of dependent requests, a JSON document
    #[arg(long, value_name = "FILE", conflicts_with_all = ["rate", "depth", "answers_share", "requests"])]
    pub scenario: Option<PathBuf>,
    /// Of arrivals and of the answers that are written out
    #[arg(long, value_name = "N", default_value = "1")]
    pub seed: u64,
    /// Of every request, in the order given; Host is put last where none is given
    #[arg(long = "header", value_name = "NAME: VALUE", value_parser = header)]
    pub headers: Vec<(String, String)>,
    /// Write answers out after the load, as JSON lines; of a scenario all, a line an arrival
    #[arg(long, value_name = "FILE")]
    pub answers: Option<PathBuf>,
    /// Share of the answers that is written out, drawn by seed over the whole load
    #[arg(long, value_name = "SHARE", default_value = "1", requires = "answers")]
    #[arg(value_parser = |text: &str| within(text, 0.0, 1.0))]
    pub answers_share: f64,
    /// At most so many; beyond it the share is lowered
    #[arg(long, value_name = "N", default_value = "100000")]
    pub answers_limit: usize,
    /// Bytes of their heads and bodies, at most; beyond it the share is lowered
    #[arg(long, value_name = "N", default_value = "268435456")]
    pub answers_bytes: usize,
    /// Without an answer for so long a connection is given up
    #[arg(long, value_name = "SECONDS", default_value = "8", value_parser = seconds)]
    pub timeout: u64,
    /// Do not wait for `go` on standard input
    #[arg(long)]
    pub start_at_once: bool,
    /// To establish all connections before the load
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = seconds)]
    pub connect_seconds: u64,
    /// To wait for answers after the load
    #[arg(long, value_name = "SECONDS", default_value = "8", value_parser = seconds)]
    pub drain_seconds: u64,
    /// To listen for answers nobody asked for, after that
    #[arg(long, value_name = "SECONDS", default_value = "0.1", value_parser = seconds)]
    pub linger_seconds: u64,
    /// Before a request is due, wait for it awake instead of asleep
    #[arg(long, value_name = "MICROSECONDS", default_value = "50", value_parser = microseconds)]
    pub spin: u64,
}

/// One load, ready to be made. Times are nanoseconds.
#[derive(Clone, Debug)]
pub struct Plan {
    /// As they were given.
    pub given: Arguments,
    /// The server.
    pub address: SocketAddr,
    /// Lines with their ends, of every request.
    pub headers: String,
    /// What a closed or open loop asks for.
    pub requests: Requests,
    /// Of the use cases.
    pub scenario: Option<Arc<Scenario>>,
}

impl Plan {
    /// Check what fits together, resolve the server, make the request; an error is one sentence for who wrote it.
    pub fn new(mut given: Arguments) -> Result<Self, String> {
        if given.connections < given.threads {
            return Err(format!("--connections {}: fewer than --threads {}", given.connections, given.threads));
        }
        if given.timeout == 0 {
            return Err("--timeout must be more than 0".into());
        }
        let (authority, target) = split(&given.url)?;
        if (given.scenario.is_some() || given.requests.is_some()) && target != "/" {
            return Err(format!("{}: the URL of the server is expected, paths are the file's", given.url));
        }
        let (address, target) = (resolve(authority)?, target.to_owned());
        if !given.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
            given.headers.push(("Host".into(), authority.to_owned()));
        }
        let headers: String = given.headers.iter().flat_map(|(name, value)| [name, ": ", value, "\r\n"]).collect();
        let requests = match &given.requests {
            Some(file) => read("--requests", file, Requests::parse)?,
            None => Requests::one(&target, &headers),
        };
        let scenario =
            given.scenario.as_deref().map(|file| read("--scenario", file, Scenario::parse)).transpose()?.map(Arc::new);
        Ok(Self { given, address, headers, requests, scenario })
    }

    /// Whether requests are due when others are answered, not at a time of their own.
    pub fn closed(&self) -> bool {
        self.given.rate.is_none() && self.scenario.is_none()
    }
}

/// What `parse` makes of the file of an option; an error names both.
fn read<T>(option: &str, path: &Path, parse: impl Fn(&str) -> Result<T, String>) -> Result<T, String> {
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string());
    text.and_then(|text| parse(&text)).map_err(|error| format!("{option} {}: {error}", path.display()))
}

/// Authority and request target of a URL.
fn split(url: &str) -> Result<(&str, &str), String> {
    let rest = url.strip_prefix("http://").ok_or_else(|| format!("{url}: a URL with http:// is expected"))?;
    let end = rest.find('/').unwrap_or(rest.len());
    let (authority, target) = rest.split_at(end);
    if authority.is_empty() || url.contains(|character: char| character.is_control() || character == ' ') {
        return Err(format!("{url}: not a URL"));
    }
    Ok((authority, if target.is_empty() { "/" } else { target }))
}

fn resolve(authority: &str) -> Result<SocketAddr, String> {
    let with_port = authority.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    let address = if with_port { authority.to_owned() } else { format!("{authority}:80") };
    let found = address.to_socket_addrs().ok().and_then(|mut found| found.next());
    found.ok_or_else(|| format!("{address} cannot be resolved"))
}

fn positive(value: &str) -> Result<usize, String> {
    value.parse().ok().filter(|&count| count > 0).ok_or_else(|| "1 or more is expected".into())
}

fn within(value: &str, least: f64, most: f64) -> Result<f64, String> {
    let number = value.parse().map_err(|_| "a number is expected")?;
    if (least..=most).contains(&number) { Ok(number) } else { Err(format!("{least} to {most} is expected")) }
}

fn seconds(value: &str) -> Result<u64, String> {
    Ok((within(value, 0.0, 1e6)? * SECOND as f64).round() as u64)
}

fn microseconds(value: &str) -> Result<u64, String> {
    Ok((within(value, 0.0, 1e6)? * 1e3) as u64)
}

fn header(line: &str) -> Result<(String, String), String> {
    let found = headers(format!("{line}\r\n\r\n").as_bytes(), |name, value| {
        Some((name.to_owned(), String::from_utf8(value.to_vec()).ok()?))
    });
    match found.as_deref() {
        Some([Some(pair)]) => Ok(pair.clone()),
        _ => Err("'NAME: VALUE' is expected".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(words: &[&str]) -> Result<Plan, String> {
        let given = Arguments::try_parse_from(["loadgen"].iter().chain(words)).map_err(|error| error.to_string())?;
        Plan::new(given)
    }

    #[test]
    fn the_options_make_a_plan() {
        let words = "--connections 64 --threads 2 --rate 500 --arrivals uniform --duration 2.5 --spin 10 --seed 9 \
                     --header Accept:a,b http://127.0.0.1:81/json?x";
        let plan = plan(&words.split_whitespace().collect::<Vec<_>>()).unwrap();
        assert_eq!((plan.given.connections, plan.given.threads, plan.given.depth), (64, 2, 1));
        assert_eq!((plan.given.rate, plan.given.arrivals, plan.given.seed), (Some(500.0), Process::Uniform, 9));
        assert_eq!((plan.given.duration, plan.given.spin), (Some(2_500_000_000), 10_000));
        assert_eq!(plan.address, "127.0.0.1:81".parse().unwrap());
        assert_eq!(plan.requests.at(0).bytes, b"GET /json?x HTTP/1.1\r\nAccept: a,b\r\nHost: 127.0.0.1:81\r\n\r\n");
        assert!(!plan.closed());
    }

    #[test]
    fn headers_keep_their_order_and_their_host() {
        let words = ["--header", "Host: tfb-server", "--header", "Accept: a, b", "http://127.0.0.1"];
        assert_eq!(
            plan(&words).unwrap().requests.at(0).bytes,
            b"GET / HTTP/1.1\r\nHost: tfb-server\r\nAccept: a, b\r\n\r\n"
        );
    }

    #[test]
    fn what_does_not_fit_is_named() {
        for (words, message) in [
            ("", "required arguments were not provided"),
            ("--rate 0 http://127.0.0.1/", "invalid value '0' for '--rate"),
            ("--rate nan http://127.0.0.1/", "invalid value 'nan' for '--rate"),
            ("--rat 5 http://127.0.0.1/", "unexpected argument '--rat'"),
            ("--depth 0 http://127.0.0.1/", "1 or more is expected"),
            ("--depth 2 --rate 5 http://127.0.0.1/", "cannot be used with"),
            ("--threads 2 http://127.0.0.1/", "--connections 1: fewer than --threads 2"),
            ("https://127.0.0.1/", "https://127.0.0.1/: a URL with http:// is expected"),
            ("--header nothing http://127.0.0.1/", "'NAME: VALUE' is expected"),
            ("--header A:b\r\nC:d http://127.0.0.1/", "'NAME: VALUE' is expected"),
            ("--answers-share 0.5 http://127.0.0.1/", "required arguments were not provided"),
            ("--answers-share 1.5 --answers a http://127.0.0.1/", "0 to 1 is expected"),
            ("--duration -1 http://127.0.0.1/", "unexpected argument '-1'"),
            ("--duration 1e7 http://127.0.0.1/", "0 to 1000000 is expected"),
            ("--timeout 0 http://127.0.0.1/", "--timeout must be more than 0"),
            ("--scenario /nowhere http://127.0.0.1/", "--scenario /nowhere: "),
            ("--scenario /nowhere http://127.0.0.1/orders", "the URL of the server is expected"),
            ("--scenario /nowhere --rate 5 http://127.0.0.1/", "cannot be used with"),
        ] {
            let error = plan(&words.split(' ').filter(|word| !word.is_empty()).collect::<Vec<_>>()).unwrap_err();
            assert!(error.contains(message), "{words}: {error}");
        }
    }
}
