//! Resource limits and scheduling of the generator's threads.

use std::num::NonZeroU64;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::set_current_timer_slack;

/// Number of file descriptors to allow in addition to the connections.
const OTHER_FILES: u64 = 64;

/// Raise the soft limit on open files as far as the connections require, without changing the hard limit.
pub fn raise_file_limit(connections: usize) -> Result<(), String> {
    let needed = connections as u64 + OTHER_FILES;
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= needed) {
        return Ok(());
    }
    if limit.maximum.is_some_and(|maximum| maximum < needed) {
        let maximum = limit.maximum.unwrap_or_default();
        return Err(format!(
            "open files: {needed} are needed, but the hard limit is {maximum}. Raise it: ulimit -Hn {needed}"
        ));
    }
    setrlimit(Resource::Nofile, Rlimit { current: Some(needed), maximum: limit.maximum })
        .map_err(|error| error.to_string())
}

/// Return the time for which this thread has been runnable but not running (the second field of schedstat), in
/// nanoseconds. Return `None` if the kernel does not report it.
pub fn run_queue_wait() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().nth(1)?.parse().ok()
}

/// Let this thread's timers expire on time. If the kernel does not permit that, timers are up to 50 µs late.
pub fn disable_timer_slack() {
    let _ = set_current_timer_slack(NonZeroU64::new(1));
}
