//! The command line, and the load plan that it defines.

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Args, Parser, ValueEnum};

use crate::clock::SECOND;
use crate::http2::EncodedRequest;
use crate::requests::RequestTable;
use crate::response::headers;
use crate::scenario::Scenario;
use crate::schedule::ArrivalProcess;
use crate::transport::{Address, H2, Peer};

/// The protocol between the generator and the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Protocol {
    /// HTTP/1.1.
    Http1,
    /// HTTP/2, negotiated by ALPN if the URL is https, and with prior knowledge otherwise.
    Http2,
    /// WebSocket: random messages, which the server must echo unchanged.
    Websocket,
}

impl Protocol {
    /// Return the protocol's name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Http1 => "http1",
            Self::Http2 => "http2",
            Self::Websocket => "websocket",
        }
    }
}

/// Generate HTTP load on one server: a closed loop, an open loop (--rate) or a scenario (--scenario)
#[derive(Clone, Debug, Parser)]
#[command(name = "loadgen", version)]
pub struct Arguments {
    /// URL to request with GET; with --requests or --scenario, the server's URL without a path
    #[arg(value_name = "URL")]
    pub url: String,
    /// Unix socket to connect to, instead of the URL's address
    #[arg(long, value_name = "PATH")]
    pub unix: Option<PathBuf>,
    /// Protocol to use
    #[arg(long, value_name = "NAME", default_value = "http1")]
    pub protocol: Protocol,
    /// Total number of connections
    #[arg(long, value_name = "N", default_value = "1", value_parser = positive)]
    pub connections: usize,
    /// Number of threads; connections and rate are divided among them
    #[arg(long, value_name = "N", default_value = "1", value_parser = positive)]
    pub threads: usize,
    /// HTTP/1.1, closed loop: number of pipelined requests per connection, sent as a batch. HTTP/2 and WebSocket:
    /// maximum number of streams or messages in flight per connection
    #[arg(long, value_name = "N", default_value = "1", value_parser = positive)]
    pub depth: usize,
    /// HTTP/2: flow-control window of each stream, in bytes
    #[arg(long, value_name = "BYTES", default_value = "1048576", value_parser = window)]
    pub window: u32,
    /// Closed loop: reopen a connection after this many responses
    #[arg(long, value_name = "N", value_parser = positive, conflicts_with_all = ["rate", "scenario"])]
    pub close_after: Option<usize>,
    /// TLS: offer only TLS 1.3 with `TLS_AES_128_GCM_SHA256` and X25519, and never resume a session
    #[arg(long)]
    pub tls_fixed: bool,
    /// Duration of the load; by default, the load lasts until SIGINT or `stop`
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub duration: Option<u64>,
    /// Open loop: total number of requests per second
    #[arg(long, value_name = "R")]
    #[arg(value_parser = |text: &str| within(text, f64::MIN_POSITIVE, 1e8))]
    pub rate: Option<f64>,
    /// Open loop: distribution of the gaps between requests
    #[arg(long, value_name = "KIND", default_value = "poisson", requires = "rate")]
    pub arrivals: ArrivalProcess,
    /// File with one request per line, as JSON; requests are drawn from it at random
    #[arg(long, value_name = "FILE")]
    pub requests: Option<PathBuf>,
    /// JSON file with use cases of dependent requests
    #[arg(long, value_name = "FILE", conflicts_with_all = ["rate", "depth", "sample_share", "requests"])]
    pub scenario: Option<PathBuf>,
    /// Seed for arrivals, drawn requests and sampled responses
    #[arg(long, value_name = "N", default_value = "1")]
    pub seed: u64,
    /// Header to send with every request; headers keep their order, and Host is appended if it is missing
    #[arg(long = "header", value_name = "NAME: VALUE", value_parser = header)]
    pub headers: Vec<(String, String)>,
    #[command(flatten)]
    pub responses: ResponseOptions,
    /// Close a connection if a response takes longer than this
    #[arg(long, value_name = "SECONDS", default_value = "8", value_parser = seconds)]
    pub timeout: u64,
    /// Start without waiting for `go` on standard input
    #[arg(long)]
    pub start_at_once: bool,
    /// Time limit for establishing all connections before the load
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = seconds)]
    pub connect_seconds: u64,
    /// Time limit for outstanding responses after the load
    #[arg(long, value_name = "SECONDS", default_value = "8", value_parser = seconds)]
    pub drain_seconds: u64,
    /// Time to listen for unsolicited responses after the last response
    #[arg(long, value_name = "SECONDS", default_value = "0.1", value_parser = seconds)]
    pub linger_seconds: u64,
    /// Time to busy-wait before a request is due, instead of sleeping
    #[arg(long, value_name = "MICROSECONDS", default_value = "50", value_parser = microseconds)]
    pub spin: u64,
}

// Options for recording responses. This is not a doc comment, because clap would show it as the program's description.
#[derive(Clone, Debug, Args)]
pub struct ResponseOptions {
    /// File to which responses are written after the load, as JSON lines; a scenario writes one line per arrival
    #[arg(id = "responses", long = "responses", value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Fraction of the responses to write; the sample is random over the whole load and depends only on the seed
    #[arg(
        id = "sample_share",
        long = "sample-share",
        value_name = "SHARE",
        default_value = "1",
        requires = "responses"
    )]
    #[arg(value_parser = |text: &str| within(text, 0.0, 1.0))]
    pub share: f64,
    /// Maximum number of responses to write; the fraction is lowered if necessary
    #[arg(id = "sample_limit", long = "sample-limit", value_name = "N", default_value = "100000")]
    pub max_count: usize,
    /// Maximum total size of the heads and bodies to write, in bytes; the fraction is lowered if necessary
    #[arg(id = "sample_bytes", long = "sample-bytes", value_name = "N", default_value = "268435456")]
    pub max_bytes: usize,
}

/// A load that is ready to run. Times are in nanoseconds.
#[derive(Clone, Debug)]
pub struct Plan {
    pub arguments: Arguments,
    pub peer: Peer,
    /// Header lines of every request, each ending in CRLF.
    pub headers: String,
    /// Requests of a closed or open loop.
    pub requests: RequestTable,
    pub scenario: Option<Arc<Scenario>>,
    /// `requests`, encoded for HTTP/2; empty for other protocols.
    pub encoded: Vec<EncodedRequest>,
}

impl Plan {
    /// Check the arguments, resolve the server's host name and read the files. Errors are messages for the user.
    pub fn new(mut arguments: Arguments) -> Result<Self, String> {
        if arguments.connections < arguments.threads {
            return Err(format!(
                "--connections {}: must be at least --threads {}, so that each thread has a connection",
                arguments.connections, arguments.threads
            ));
        }
        let (http1, http2) = (arguments.protocol == Protocol::Http1, arguments.protocol == Protocol::Http2);
        if arguments.rate.is_some() && arguments.depth > 1 && http1 {
            return Err("--depth: HTTP/1.1 is not pipelined with --rate; remove --depth or use --protocol http2".into());
        }
        if arguments.close_after.is_some() && !http1 {
            return Err("--close-after: needs HTTP/1.1".into());
        }
        if arguments.scenario.is_some() && !http1 {
            return Err("--scenario: needs HTTP/1.1".into());
        }
        if (arguments.requests.is_some() || arguments.responses.file.is_some()) && !http1 && !http2 {
            return Err("--protocol websocket: all messages are random; remove --requests and --responses".into());
        }
        if arguments.timeout == 0 {
            return Err("--timeout: must be greater than 0".into());
        }
        let (tls, authority, target) = split_url(&arguments.url)?;
        if (arguments.scenario.is_some() || arguments.requests.is_some()) && target != "/" {
            return Err(format!(
                "{}: expected the URL of a server without a path, because the file defines the paths",
                arguments.url
            ));
        }
        let address = match &arguments.unix {
            Some(path) => Address::unix(path)?,
            None => Address::Tcp(resolve(authority, if tls { 443 } else { 80 })?),
        };
        let host =
            if has_port(authority) { authority.rsplit_once(':').map_or("", |(host, _)| host) } else { authority };
        let alpn = if http2 { H2 } else { b"http/1.1" };
        let peer = if tls { Peer::with_tls(address, host, alpn, arguments.tls_fixed)? } else { Peer::plain(address) };
        let target = target.to_owned();
        if !arguments.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
            arguments.headers.push(("Host".into(), authority.to_owned()));
        }
        let headers: String = arguments.headers.iter().flat_map(|(name, value)| [name, ": ", value, "\r\n"]).collect();
        let requests = match &arguments.requests {
            Some(file) => read("--requests", file, RequestTable::parse)?,
            None => RequestTable::single_get(&target, &headers),
        };
        let scenario = arguments
            .scenario
            .as_deref()
            .map(|file| read("--scenario", file, Scenario::parse))
            .transpose()?
            .map(Arc::new);
        let scheme = if tls { "https" } else { "http" };
        let encoded = if http2 { requests.encode(scheme)? } else { Vec::new() };
        Ok(Self { arguments, peer, headers, requests, scenario, encoded })
    }

    /// Return whether the requests use HTTP/2.
    pub fn http2(&self) -> bool {
        self.arguments.protocol == Protocol::Http2
    }

    /// Return whether the protocol has a handshake of its own, as HTTP/2 and WebSocket do.
    pub fn opens_sessions(&self) -> bool {
        self.arguments.protocol != Protocol::Http1
    }

    /// Return whether the load is a closed loop, in which each response triggers the next request.
    pub fn closed_loop(&self) -> bool {
        self.arguments.rate.is_none() && self.scenario.is_none()
    }
}

/// Read and parse an option's file. An error names the option and the file.
fn read<T>(option: &str, path: &Path, parse: impl Fn(&str) -> Result<T, String>) -> Result<T, String> {
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string());
    text.and_then(|text| parse(&text)).map_err(|error| format!("{option} {}: {error}", path.display()))
}

/// Return whether a URL uses TLS, and the URL's authority and request target.
fn split_url(url: &str) -> Result<(bool, &str, &str), String> {
    let tls = url.starts_with("https://");
    let rest = url.strip_prefix(if tls { "https://" } else { "http://" });
    let rest = rest.ok_or_else(|| format!("{url}: expected a URL that starts with http:// or https://"))?;
    let end = rest.find('/').unwrap_or(rest.len());
    let (authority, target) = rest.split_at(end);
    if authority.is_empty() || url.contains(|character: char| character.is_control() || character == ' ') {
        return Err(format!("{url}: not a valid URL"));
    }
    Ok((tls, authority, if target.is_empty() { "/" } else { target }))
}

fn has_port(authority: &str) -> bool {
    authority.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok())
}

fn resolve(authority: &str, default_port: u16) -> Result<SocketAddr, String> {
    let address = if has_port(authority) { authority.to_owned() } else { format!("{authority}:{default_port}") };
    let resolved = address.to_socket_addrs().ok().and_then(|mut addresses| addresses.next());
    resolved.ok_or_else(|| format!("{address}: the host name cannot be resolved"))
}

fn positive(value: &str) -> Result<usize, String> {
    value.parse().ok().filter(|&count| count > 0).ok_or_else(|| "expected an integer of 1 or more".into())
}

fn window(value: &str) -> Result<u32, String> {
    value.parse().ok().filter(|size| (1..1 << 31).contains(size)).ok_or_else(|| "expected 1 to 2147483647".into())
}

fn within(value: &str, min: f64, max: f64) -> Result<f64, String> {
    let number = value.parse().map_err(|_| "expected a number")?;
    if (min..=max).contains(&number) { Ok(number) } else { Err(format!("expected a number from {min} to {max}")) }
}

fn seconds(value: &str) -> Result<u64, String> {
    Ok((within(value, 0.0, 1e6)? * SECOND as f64).round() as u64)
}

fn microseconds(value: &str) -> Result<u64, String> {
    Ok((within(value, 0.0, 1e6)? * 1e3) as u64)
}

fn header(line: &str) -> Result<(String, String), String> {
    let parsed = headers(format!("{line}\r\n\r\n").as_bytes(), |name, value| {
        Some((name.to_owned(), String::from_utf8(value.to_vec()).ok()?))
    });
    match parsed.as_deref() {
        Some([Some(pair)]) => Ok(pair.clone()),
        _ => Err("expected 'NAME: VALUE'".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(words: &[&str]) -> Result<Plan, String> {
        let arguments =
            Arguments::try_parse_from(["loadgen"].iter().chain(words)).map_err(|error| error.to_string())?;
        Plan::new(arguments)
    }

    #[test]
    fn arguments_become_a_plan() {
        let words = "--connections 64 --threads 2 --rate 500 --arrivals uniform --duration 2.5 --spin 10 --seed 9 \
                     --header Accept:a,b http://127.0.0.1:81/json?x";
        let plan = plan(&words.split_whitespace().collect::<Vec<_>>()).unwrap();
        assert_eq!((plan.arguments.connections, plan.arguments.threads, plan.arguments.depth), (64, 2, 1));
        assert_eq!(
            (plan.arguments.rate, plan.arguments.arrivals, plan.arguments.seed),
            (Some(500.0), ArrivalProcess::Uniform, 9)
        );
        assert_eq!((plan.arguments.duration, plan.arguments.spin), (Some(2_500_000_000), 10_000));
        assert_eq!(plan.peer.address, Address::Tcp("127.0.0.1:81".parse().unwrap()));
        assert_eq!(plan.requests.get(0).bytes, b"GET /json?x HTTP/1.1\r\nAccept: a,b\r\nHost: 127.0.0.1:81\r\n\r\n");
        assert!(!plan.closed_loop());
    }

    #[test]
    fn headers_keep_order_and_host() {
        let words = ["--header", "Host: tfb-server", "--header", "Accept: a, b", "http://127.0.0.1"];
        assert_eq!(
            plan(&words).unwrap().requests.get(0).bytes,
            b"GET / HTTP/1.1\r\nHost: tfb-server\r\nAccept: a, b\r\n\r\n"
        );
    }

    #[test]
    fn errors_name_the_argument() {
        for (words, message) in [
            ("", "required arguments were not provided"),
            ("--rate 0 http://127.0.0.1/", "invalid value '0' for '--rate"),
            ("--rate nan http://127.0.0.1/", "invalid value 'nan' for '--rate"),
            ("--rat 5 http://127.0.0.1/", "unexpected argument '--rat'"),
            ("--depth 0 http://127.0.0.1/", "expected an integer of 1 or more"),
            ("--depth 2 --rate 5 http://127.0.0.1/", "is not pipelined with --rate"),
            ("--window 0 http://127.0.0.1/", "expected 1 to 2147483647"),
            ("--protocol http3 http://127.0.0.1/", "invalid value 'http3' for '--protocol"),
            ("--protocol http2 --scenario /nowhere http://127.0.0.1/", "--scenario: needs HTTP/1.1"),
            ("--protocol http2 --close-after 5 http://127.0.0.1/", "--close-after: needs HTTP/1.1"),
            ("--protocol websocket --responses a http://127.0.0.1/", "remove --requests and --responses"),
            ("--threads 2 http://127.0.0.1/", "--connections 1: must be at least --threads 2"),
            ("ftp://127.0.0.1/", "ftp://127.0.0.1/: expected a URL that starts with http:// or https://"),
            ("--header nothing http://127.0.0.1/", "expected 'NAME: VALUE'"),
            ("--header A:b\r\nC:d http://127.0.0.1/", "expected 'NAME: VALUE'"),
            ("--sample-share 0.5 http://127.0.0.1/", "required arguments were not provided"),
            ("--sample-share 1.5 --responses a http://127.0.0.1/", "expected a number from 0 to 1"),
            ("--duration -1 http://127.0.0.1/", "unexpected argument '-1'"),
            ("--duration 1e7 http://127.0.0.1/", "expected a number from 0 to 1000000"),
            ("--timeout 0 http://127.0.0.1/", "--timeout: must be greater than 0"),
            ("--scenario /nowhere http://127.0.0.1/", "--scenario /nowhere: "),
            ("--scenario /nowhere http://127.0.0.1/orders", "expected the URL of a server"),
            ("--scenario /nowhere --rate 5 http://127.0.0.1/", "cannot be used with"),
        ] {
            let error = plan(&words.split(' ').filter(|word| !word.is_empty()).collect::<Vec<_>>()).unwrap_err();
            assert!(error.contains(message), "{words}: {error}");
        }
    }
}
