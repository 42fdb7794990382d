//! Monotonic time in nanoseconds, comparable across all processes on a machine.

use rustix::time::{ClockId, Timespec, clock_gettime};

/// Nanoseconds in a second.
pub const SECOND: u64 = 1_000_000_000;

/// Nanoseconds in a millisecond.
pub const MILLISECOND: u64 = 1_000_000;

/// Return the current time of `CLOCK_MONOTONIC`, in nanoseconds.
#[inline]
pub fn now() -> u64 {
    nanoseconds(clock_gettime(ClockId::Monotonic))
}

/// Return the CPU time of this process, in seconds.
pub fn cpu_seconds() -> f64 {
    nanoseconds(clock_gettime(ClockId::ProcessCPUTime)) as f64 / SECOND as f64
}

/// Convert a duration in nanoseconds to a `timespec`.
pub fn timespec(nanoseconds: u64) -> Timespec {
    Timespec { tv_sec: (nanoseconds / SECOND) as i64, tv_nsec: (nanoseconds % SECOND) as i64 }
}

#[inline]
fn nanoseconds(time: Timespec) -> u64 {
    time.tv_sec as u64 * SECOND + time.tv_nsec as u64
}
