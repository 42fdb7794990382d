//! What the process may have of the system, and how much of the CPU its threads had to wait for.

use std::num::NonZeroU64;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::set_current_timer_slack;

/// Files that a process holds beside its connections.
const OTHER_FILES: u64 = 64;

/// As many files as the connections need; the hard limit is the machine's.
pub fn raise_file_limit(connections: usize) -> Result<(), String> {
    let needed = connections as u64 + OTHER_FILES;
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= needed) {
        return Ok(());
    }
    if limit.maximum.is_some_and(|maximum| maximum < needed) {
        let maximum = limit.maximum.unwrap_or_default();
        return Err(format!("{needed} files are needed, the hard limit is {maximum}: raise it (ulimit -Hn {needed})"));
    }
    setrlimit(Resource::Nofile, Rlimit { current: Some(needed), maximum: limit.maximum })
        .map_err(|error| error.to_string())
}

/// Nanoseconds for which this thread was ready, but another had its CPU: the second field of its schedstat.
pub fn run_queue_wait() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().nth(1)?.parse().ok()
}

/// Timers of this thread without slack; where the system refuses, the load goes on with it.
pub fn without_timer_slack() {
    let _ = set_current_timer_slack(NonZeroU64::new(1));
}
