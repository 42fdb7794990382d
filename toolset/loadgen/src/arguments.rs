//! The command line, parsed once into what a load is.

use std::fs::File;
use std::io::BufReader;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::str::FromStr;

use lexopt::prelude::*;

use crate::arrivals::Process;
use crate::clock::SECOND;
use crate::request::{Defaults, Request, Rule, read_list};
use crate::scenario::Scenario;

/// What `--help` prints.
pub const USAGE: &str = "\
loadgen [OPTIONS] URL [URL…]     an HTTP/1.1 load; all URLs are of one server

the load
  --connections N        connections over all threads (1)
  --threads N            threads, each with its share of the connections (1)
  --cpus LIST            pin thread i to the i-th of these CPUs: 0,2 or 0-3
  --depth N              requests on a connection at once (1); a closed loop sends them in one batch, as wrk does
  --duration SECONDS     how long to send; without it until SIGINT or `stop`
  --seconds SECONDS      the same
  --rate R               open loop: R requests per second over all threads; without it a closed loop
  --arrivals KIND        of the open loop: poisson (default) or uniform
  --seed N               of arrivals, samples and random order (1)
requests
  --method METHOD        GET (default), HEAD, POST, …
  --header 'NAME: VALUE' in the order given; Host is put last where none is given
  --requests FILE        a JSON object a line: target, method, headers, body_base64, expect_body_base64, expect_length
  --order KIND           of several requests: rotate (default) or random
answers
  --expect-body TEXT     the body of every answer
  --expect-length N[-M]  the length of every body in bytes
  --sample-rate SHARE    write this share of the answers out (0 to 1, default 0), drawn by seed
  --sample-file FILE     where to, as JSON lines
  --sample-limit N       at most so many (1000000)
  --sample-bytes N       at most so many bytes of lines (512 MiB)
  --timeout SECONDS      without an answer for so long a connection is given up (8)
scenario
  --scenario FILE        use cases of dependent requests, in place of the above; the URL is of the server alone
  --answers FILE         write a JSON object a line of each arrival of the scenario, after the load
  --wait-for-go          a scenario starts at once; with this it says that it is ready and waits for `go`
control
  --start-at-once        do not wait for `go` on standard input
  --connect-at-go        establish the connections when the load starts, as wrk does
  --connect-seconds S    to establish all connections before the load (10)
  --drain-seconds S      to wait for answers after the load (8)
  --linger-seconds S     to listen for answers nobody asked for, after that (0.1)
  --interval SECONDS     a line each (1)
  --spin MICROSECONDS    before a request is due, wait for it awake instead of asleep (50)
";

/// What the command line asks for: one load, ready to be run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The server.
    pub address: SocketAddr,
    /// The requests, in order.
    pub requests: Vec<Request>,
    /// Draw the next request at random instead of by rotation.
    pub random_order: bool,
    /// Connections over all workers.
    pub connections: usize,
    /// Worker threads.
    pub threads: usize,
    /// CPUs to pin the workers to, in turns.
    pub cpus: Vec<usize>,
    /// Requests on a connection at once.
    pub depth: usize,
    /// Nanoseconds to send for; without end if absent.
    pub duration: Option<u64>,
    /// Requests per second of an open loop; absent for a closed one.
    pub rate: Option<f64>,
    /// Arrivals of the open loop.
    pub arrivals: Process,
    /// Of everything that is drawn.
    pub seed: u64,
    /// Share of the responses that are written out.
    pub sample_rate: f64,
    /// File for those.
    pub sample_file: Option<PathBuf>,
    /// The most that are written out.
    pub sample_limit: u64,
    /// Bytes of their lines, at most.
    pub sample_bytes: u64,
    /// Nanoseconds without an answer after which a connection is given up.
    pub timeout: u64,
    /// Do not wait for `go`.
    pub start_at_once: bool,
    /// Establish the connections when the load starts.
    pub connect_at_go: bool,
    /// Nanoseconds to establish them before it.
    pub connect: u64,
    /// Nanoseconds to wait for answers after the load.
    pub drain: u64,
    /// Nanoseconds to listen after that.
    pub linger: u64,
    /// Nanoseconds of an interval.
    pub interval: u64,
    /// Nanoseconds to spin before a request is due.
    pub spin: u64,
}

/// A scenario and how it is played.
#[derive(Clone, Debug)]
pub struct Play {
    /// What to play.
    pub scenario: Scenario,
    /// Connections, threads, times; it has no requests of its own.
    pub plan: Plan,
    /// Headers of every request, in order.
    pub headers: Vec<(String, String)>,
    /// File for a line of each arrival.
    pub answers: Option<PathBuf>,
}

/// What the command line may be.
#[derive(Debug)]
pub enum Asked {
    /// `--help`.
    Help,
    /// `--version`.
    Version,
    /// A load.
    Load(Box<Plan>),
    /// A scenario.
    Play(Box<Play>),
}

#[derive(Default)]
struct Raw {
    urls: Vec<String>,
    method: Option<String>,
    headers: Vec<(String, String)>,
    list: Option<PathBuf>,
    rule: Rule,
    scenario: Option<PathBuf>,
    answers: Option<PathBuf>,
    wait_for_go: bool, // of a scenario
}

/// Parse the arguments without the program's name; an error is one sentence for the person who wrote them.
pub fn parse<I, T>(arguments: I) -> Result<Asked, String>
where
    I: IntoIterator<Item = T>,
    T: Into<std::ffi::OsString>,
{
    let mut parser = lexopt::Parser::from_args(arguments);
    let mut raw = Raw::default();
    let mut plan = defaults();
    while let Some(argument) = parser.next().map_err(|error| error.to_string())? {
        match argument {
            Long("help") | Short('h') => return Ok(Asked::Help),
            Long("version") => return Ok(Asked::Version),
            Value(url) => raw.urls.push(url.string().map_err(|error| error.to_string())?),
            Long(name) => {
                let name = format!("--{name}");
                if !flag(&name, &mut plan, &mut raw) {
                    let value = parser.value().and_then(lexopt::ValueExt::string).map_err(|error| error.to_string())?;
                    option(&name, &value, &mut plan, &mut raw)?;
                }
            }
            Short(_) => return Err(argument.unexpected().to_string()),
        }
    }
    if raw.scenario.is_some() {
        return scenario(plan, raw).map(|play| Asked::Play(Box::new(play)));
    }
    if raw.answers.is_some() || raw.wait_for_go {
        return Err("--answers and --wait-for-go are of a scenario: --scenario is missing".into());
    }
    complete(plan, raw).map(|plan| Asked::Load(Box::new(plan)))
}

fn defaults() -> Plan {
    Plan {
        address: SocketAddr::from(([127, 0, 0, 1], 80)),
        requests: Vec::new(),
        random_order: false,
        connections: 1,
        threads: 1,
        cpus: Vec::new(),
        depth: 1,
        duration: None,
        rate: None,
        arrivals: Process::Poisson,
        seed: 1,
        sample_rate: 0.0,
        sample_file: None,
        sample_limit: 1_000_000,
        sample_bytes: 512 << 20,
        timeout: 8 * SECOND,
        start_at_once: false,
        connect_at_go: false,
        connect: 10 * SECOND,
        drain: 8 * SECOND,
        linger: SECOND / 10,
        interval: SECOND,
        spin: 50_000,
    }
}

/// Options without a value; false if it is none of them.
fn flag(name: &str, plan: &mut Plan, raw: &mut Raw) -> bool {
    match name {
        "--wait-for-go" => raw.wait_for_go = true,
        "--start-at-once" => plan.start_at_once = true,
        "--connect-at-go" => plan.connect_at_go = true,
        _ => return false,
    }
    true
}

fn option(name: &str, value: &str, plan: &mut Plan, raw: &mut Raw) -> Result<(), String> {
    match name {
        "--connections" => plan.connections = positive(name, value)?,
        "--threads" => plan.threads = positive(name, value)?,
        "--cpus" => plan.cpus = cpu_list(value)?,
        "--depth" => plan.depth = positive(name, value)?,
        "--scenario" => raw.scenario = Some(value.into()),
        "--answers" => raw.answers = Some(value.into()),
        "--duration" | "--seconds" => plan.duration = Some(seconds(name, value)?),
        "--rate" => plan.rate = Some(number(name, value)?).filter(|&rate: &f64| rate > 0.0 && rate <= 1e8),
        "--arrivals" => {
            plan.arrivals = match value {
                "poisson" => Process::Poisson,
                "uniform" => Process::Uniform,
                _ => return Err(format!("--arrivals {value}: poisson or uniform is expected")),
            }
        }
        "--seed" => plan.seed = number(name, value)?,
        "--method" => raw.method = Some(token(name, value)?),
        "--header" => raw.headers.push(header(value)?),
        "--requests" => raw.list = Some(value.into()),
        "--order" => {
            plan.random_order = match value {
                "rotate" => false,
                "random" => true,
                _ => return Err(format!("--order {value}: rotate or random is expected")),
            }
        }
        "--expect-body" => raw.rule.exact = Some(value.as_bytes().to_vec()),
        "--expect-length" => raw.rule.length = Some(range(name, value)?),
        "--sample-rate" => plan.sample_rate = number(name, value)?,
        "--sample-file" => plan.sample_file = Some(value.into()),
        "--sample-limit" => plan.sample_limit = number(name, value)?,
        "--sample-bytes" => plan.sample_bytes = number(name, value)?,
        "--timeout" => plan.timeout = seconds(name, value)?,
        "--connect-seconds" => plan.connect = seconds(name, value)?,
        "--drain-seconds" => plan.drain = seconds(name, value)?,
        "--linger-seconds" => plan.linger = seconds(name, value)?,
        "--interval" => plan.interval = seconds(name, value)?,
        "--spin" => plan.spin = (number::<f64>(name, value)?.clamp(0.0, 1e6) * 1e3) as u64,
        _ => return Err(format!("{name}: unknown; --help lists the options")),
    }
    if name == "--rate" && plan.rate.is_none() {
        return Err(format!("--rate {value}: more than 0 and at most 100 million requests per second are expected"));
    }
    Ok(())
}

/// A scenario has its own requests and rates: what says something else of them does not fit.
fn scenario(mut plan: Plan, mut raw: Raw) -> Result<Play, String> {
    for (given, name) in [
        (plan.rate.is_some(), "--rate"),
        (plan.depth > 1, "--depth"),
        (plan.sample_file.is_some(), "--sample-file"),
        (plan.connect_at_go, "--connect-at-go"),
        (raw.method.is_some(), "--method"),
        (raw.list.is_some(), "--requests"),
        (raw.rule != Rule::default(), "--expect-…"),
    ] {
        if given {
            return Err(format!("{name} is not for a scenario: the plan says what is sent, and when"));
        }
    }
    let target = address(&mut plan, &mut raw)?;
    if raw.urls.len() > 1 || target != "/" {
        return Err(format!("{}: a scenario takes the URL of one server, without a path", raw.urls[0]));
    }
    plan.start_at_once = !raw.wait_for_go;
    consistent(&plan)?;
    let scenario = Scenario::read(raw.scenario.as_deref().unwrap_or("".as_ref()))?;
    Ok(Play { scenario, plan, headers: raw.headers, answers: raw.answers })
}

/// Resolve the server of the first URL and put its Host among the headers; the first request target.
fn address(plan: &mut Plan, raw: &mut Raw) -> Result<String, String> {
    let first = raw.urls.first().ok_or("a URL is missing; --help shows how it is used")?;
    let (authority, target) = split(first)?;
    let address = if authority.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok()) {
        authority.to_owned()
    } else {
        format!("{authority}:80")
    };
    plan.address = address
        .to_socket_addrs()
        .ok()
        .and_then(|mut found| found.next())
        .ok_or_else(|| format!("{first}: {address} cannot be resolved"))?;
    if !raw.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
        raw.headers.push(("Host".into(), authority.into()));
    }
    Ok(target.to_owned())
}

/// Check what fits together, make the requests.
fn complete(mut plan: Plan, mut raw: Raw) -> Result<Plan, String> {
    address(&mut plan, &mut raw)?;
    let (authority, _) = split(&raw.urls[0])?;
    let method = raw.method.as_deref().unwrap_or("GET");
    if let Some(path) = &raw.list {
        let name = path.display().to_string();
        let file = File::open(path).map_err(|error| format!("{name}: {error}"))?;
        let defaults = Defaults { method, headers: &raw.headers, rule: &raw.rule };
        plan.requests = read_list(&name, &mut BufReader::new(file), &defaults)?;
    } else {
        for url in &raw.urls {
            let (other, target) = split(url)?;
            if other != authority {
                return Err(format!("{url}: all URLs must be of one server, {authority}"));
            }
            plan.requests.push(Request::new(method, target, &raw.headers, b"", raw.rule.clone()));
        }
    }
    consistent(&plan)?;
    Ok(plan)
}

fn consistent(plan: &Plan) -> Result<(), String> {
    if plan.connections < plan.threads {
        return Err(format!("--connections {}: fewer than --threads {}", plan.connections, plan.threads));
    }
    if !(0.0..=1.0).contains(&plan.sample_rate) {
        return Err(format!("--sample-rate {}: a share between 0 and 1 is expected", plan.sample_rate));
    }
    if (plan.sample_rate > 0.0) != plan.sample_file.is_some() {
        return Err("--sample-rate and --sample-file are given together or not at all".into());
    }
    if plan.interval < SECOND / 100 || plan.timeout == 0 {
        return Err("--interval must be 0.01 or more, --timeout more than 0".into());
    }
    Ok(())
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

fn number<N: FromStr>(name: &str, value: &str) -> Result<N, String> {
    value.parse().map_err(|_| format!("{name} {value}: a number is expected"))
}

fn positive(name: &str, value: &str) -> Result<usize, String> {
    number(name, value).ok().filter(|&count| count > 0).ok_or_else(|| format!("{name} {value}: 1 or more is expected"))
}

fn seconds(name: &str, value: &str) -> Result<u64, String> {
    let seconds: f64 = number(name, value)?;
    if (0.0..=1e6).contains(&seconds) {
        Ok((seconds * SECOND as f64).round() as u64)
    } else {
        Err(format!("{name} {value}: seconds between 0 and a million are expected"))
    }
}

fn range(name: &str, value: &str) -> Result<(u64, u64), String> {
    let (least, most) = value.split_once('-').unwrap_or((value, value));
    let range = (number(name, least)?, number(name, most)?);
    if range.0 <= range.1 { Ok(range) } else { Err(format!("{name} {value}: an empty range")) }
}

fn token(name: &str, value: &str) -> Result<String, String> {
    if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
        Ok(value.to_owned())
    } else {
        Err(format!("{name} {value}: a method is expected"))
    }
}

fn header(value: &str) -> Result<(String, String), String> {
    let wrong = || format!("--header {value:?}: 'NAME: VALUE' is expected");
    let (name, content) = crate::response::header(value.as_bytes()).ok_or_else(wrong)?;
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).map_err(|_| wrong());
    Ok((text(name)?, text(content)?))
}

fn cpu_list(value: &str) -> Result<Vec<usize>, String> {
    let mut cpus = Vec::new();
    for part in value.split(',') {
        let (first, last) = range("--cpus", part)?;
        if last >= 1024 {
            return Err(format!("--cpus {value}: there is no such CPU"));
        }
        cpus.extend(first as usize..=last as usize);
    }
    Ok(cpus)
}

#[cfg(test)]
mod tests;
