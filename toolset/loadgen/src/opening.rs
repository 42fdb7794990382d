//! What comes before a load, whatever kind it is: its threads' CPUs, their connections, and the word "go".

use std::num::NonZeroU64;
use std::sync::mpsc::Receiver;

use rustix::thread::{CpuSet, sched_setaffinity, set_current_timer_slack};

use crate::arguments::Plan;
use crate::clock::SECOND;
use crate::listening::{Listener, Word};
use crate::reports::Ending;

/// What a thread told, as far as it matters before the load.
#[derive(Debug)]
pub enum Told {
    /// It could not be made, and why.
    Failed(String),
    /// It has done what it could to connect: connections that are up.
    Connected(usize),
    /// Something else.
    Other,
}

/// This thread's CPU, and timers without slack; where the system refuses, the load goes on without.
pub fn settle_in(index: usize, cpus: &[usize]) {
    if let Some(&cpu) = cpus.get(index % cpus.len().max(1)) {
        let mut set = CpuSet::new();
        set.set(cpu);
        if let Err(error) = sched_setaffinity(None, &set) {
            eprintln!("loadgen: thread {index} is not pinned to CPU {cpu}: {error}");
        }
    }
    let _ = set_current_timer_slack(NonZeroU64::new(1));
}

/// Connections of all threads once each has done what it could; None when it was called off before.
///
/// `gone` becomes true when somebody says go meanwhile.
pub fn connections<E>(
    threads: usize,
    events: &Receiver<E>,
    listener: &mut Listener,
    gone: &mut bool,
    told: impl Fn(E) -> Told,
) -> Result<Option<usize>, String> {
    let (mut up, mut done) = (0, 0);
    loop {
        while let Ok(event) = events.try_recv() {
            match told(event) {
                Told::Failed(message) => return Err(message),
                Told::Connected(connections) => {
                    up += connections;
                    done += 1;
                }
                Told::Other => {}
            }
        }
        if done == threads {
            return Ok(Some(up));
        }
        match listener.listen(Some(SECOND))? {
            Some(Word::Go) => *gone = true,
            Some(Word::Stop) => return Ok(None),
            Some(Word::End) if !*gone => return Ok(None),
            Some(Word::End) | None => {}
        }
    }
}

/// Say that not all connections are there.
pub fn not_connected(plan: &Plan, up: usize) -> Ending {
    eprintln!(
        "loadgen: {up} of {} connections to {} were established within {} s",
        plan.connections,
        plan.address,
        plan.connect as f64 / SECOND as f64
    );
    Ending::NotConnected
}

/// Wait for the word unless it was said; false when the load is called off.
pub fn go(listener: &mut Listener, mut gone: bool) -> Result<bool, String> {
    while !gone {
        match listener.listen(None)? {
            Some(Word::Go) => gone = true,
            Some(Word::Stop | Word::End) => return Ok(false),
            None => {}
        }
    }
    Ok(true)
}
