//! State shared by all threads.

use std::fmt::Display;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::time::UNIX_EPOCH;

use crate::settings;
use crate::upstream;

const ROWS: usize = 10_000;
/// Maximum number of connections to the upstream. Every implementation has the same limit.
const UPSTREAM_CONNECTIONS: usize = 256;

pub struct Shared {
    pub database: settings::Database,
    pub upstream: Option<upstream::Target>,
    /// Maximum number of connections to the upstream, per thread.
    pub upstream_connections: usize,
    /// The cache for `/cached-queries`: random numbers indexed by row id, or 0 for rows that are not cached.
    cache: Vec<AtomicI32>,
    stopping: AtomicBool,
}

impl Shared {
    pub fn new(database: settings::Database, upstream: Option<upstream::Target>, threads: usize) -> Self {
        let cache = (0..=ROWS).map(|_| AtomicI32::new(0)).collect();
        let upstream_connections = (UPSTREAM_CONNECTIONS / threads).max(1);
        Self { database, upstream, upstream_connections, cache, stopping: AtomicBool::new(false) }
    }

    /// Returns a row's cached random number, or None if the row is not cached.
    pub fn cached(&self, id: i32) -> Option<i32> {
        match self.cache[id as usize].load(Ordering::Relaxed) {
            0 => None,
            number => Some(number),
        }
    }

    /// Caches a row's random number. Ignores unknown ids.
    pub fn cache(&self, id: i32, number: i32) {
        if let Some(place) = self.cache.get(id as usize) {
            place.store(number, Ordering::Relaxed);
        }
    }

    pub fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }

    pub fn stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }
}

/// Logs at most one failure per second.
pub fn complain(message: impl Display) {
    static LAST: AtomicU64 = AtomicU64::new(0);
    let now = UNIX_EPOCH.elapsed().map_or(0, |time| time.as_secs());
    if LAST.swap(now, Ordering::Relaxed) != now {
        eprintln!("{message}");
    }
}
