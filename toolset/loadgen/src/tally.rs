//! What a worker counts in one interval, and how several tallies become one.

use serde_json::{Map, Value, json};

use crate::distribution::Distribution;

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Counts of an interval; each adds up over workers and intervals.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct Counters {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl Counters {
            /// Add those of another interval or worker.
            pub fn add(&mut self, other: &Self) {
                $(self.$name += other.$name;)*
            }

            /// By name.
            pub fn json(&self) -> Map<String, Value> {
                [$((stringify!($name).to_owned(), json!(self.$name)),)*].into_iter().collect()
            }
        }
    };
}

counters! {
    /// Requests given to the kernel, also those that it refused.
    sent,
    /// Complete responses to requests, of any status.
    received,
    /// Responses with a 2xx status whose body is as the rule says.
    successes,
    /// Responses that no request was waiting for.
    unasked_responses,
    /// Bytes of those, complete or not, and of what is no response at all.
    unasked_bytes,
    /// Bytes written.
    bytes_out,
    /// Bytes read.
    bytes_in,
    /// Bytes of the responses that count as received: heads, framing and bodies.
    response_bytes,
    /// Connections established.
    connections_opened,
    /// Connections that the peer closed or reset, or of which it said that it would close them.
    connections_closed_by_peer,
    /// Connections established again in place of one that was lost.
    reconnects,
    /// Connections that were given up since no answer came within the timeout.
    connections_hung,
    /// Responses written out for the harness to judge.
    sampled,
    /// Responses that were drawn, but not written out since the limit had been reached.
    sampled_over_limit,
}

/// What can go wrong, each of which is an error and never throughput.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Fault {
    /// A connection could not be established (of a connection; all others are of a request).
    Connect,
    /// The kernel did not take the request: the connection was broken.
    Write,
    /// The peer closed the connection before the answer was complete.
    Closed,
    /// No complete answer within the timeout.
    Timeout,
    /// The answer is not HTTP/1.1, or its end cannot be known.
    Framing,
    /// Waited on a connection that was given up for the fault of a request before it.
    Dropped,
    /// A status other than 2xx.
    Status,
    /// A body of another length than asked for.
    Length,
    /// A body with other bytes than asked for.
    Body,
}

const FAULTS: [(Fault, &str); 9] = [
    (Fault::Connect, "connect"),
    (Fault::Write, "write"),
    (Fault::Closed, "closed"),
    (Fault::Timeout, "timeout"),
    (Fault::Framing, "framing"),
    (Fault::Dropped, "dropped"),
    (Fault::Status, "status"),
    (Fault::Length, "length"),
    (Fault::Body, "body"),
];

/// Everything of one interval of one worker, or of several.
#[derive(Clone, Debug)]
pub struct Tally {
    /// Plain counts.
    pub counters: Counters,
    /// From the intended send time to the last byte of the answer (open loop only).
    pub latency: Distribution,
    /// From the write of the request to the last byte of the answer.
    pub service: Distribution,
    /// What the generator itself was late by (open loop only).
    pub lag: Distribution,
    /// Most requests that were due and waited for a free connection; over several workers the sum of their maxima.
    pub backlog_peak: u64,
    faults: [u64; FAULTS.len()],
    statuses: Vec<u64>, // by status code
}

impl Default for Tally {
    fn default() -> Self {
        Self {
            counters: Counters::default(),
            latency: Distribution::default(),
            service: Distribution::default(),
            lag: Distribution::default(),
            backlog_peak: 0,
            faults: [0; FAULTS.len()],
            statuses: vec![0; 1000],
        }
    }
}

impl Tally {
    /// Count faults of one kind.
    pub fn fault(&mut self, fault: Fault, count: u64) {
        self.faults[fault as usize] += count;
    }

    /// How many faults of this kind there were.
    pub fn faults(&self, fault: Fault) -> u64 {
        self.faults[fault as usize]
    }

    /// Count a response of this status.
    #[inline]
    pub fn status(&mut self, status: u16) {
        self.statuses[usize::from(status)] += 1;
    }

    /// Add what another worker counted in the same interval.
    pub fn add_beside(&mut self, other: &Self) {
        let peak = self.backlog_peak + other.backlog_peak;
        self.add_after(other);
        self.backlog_peak = peak;
    }

    /// Add what was counted in a later interval.
    pub fn add_after(&mut self, other: &Self) {
        self.counters.add(&other.counters);
        self.latency.add(&other.latency);
        self.service.add(&other.service);
        self.lag.add(&other.lag);
        self.backlog_peak = self.backlog_peak.max(other.backlog_peak);
        for (mine, theirs) in self.faults.iter_mut().zip(&other.faults) {
            *mine += theirs;
        }
        for (mine, theirs) in self.statuses.iter_mut().zip(&other.statuses) {
            *mine += theirs;
        }
    }

    /// Back to nothing, keeping the memory.
    pub fn clear(&mut self) {
        self.counters = Counters::default();
        self.latency.clear();
        self.service.clear();
        self.lag.clear();
        self.backlog_peak = 0;
        self.faults = [0; FAULTS.len()];
        self.statuses.fill(0);
    }

    /// As the JSON lines show it.
    pub fn json(&self) -> Map<String, Value> {
        let mut fields = self.counters.json();
        let errors: Map<String, Value> =
            FAULTS.iter().map(|(fault, name)| ((*name).into(), json!(self.faults(*fault)))).collect();
        let statuses: Map<String, Value> = (100..1000)
            .filter(|&status| self.statuses[status] > 0)
            .map(|status| (status.to_string(), json!(self.statuses[status])))
            .collect();
        fields.insert("errors".into(), errors.into());
        fields.insert("statuses".into(), statuses.into());
        fields.insert("backlog_peak".into(), json!(self.backlog_peak));
        fields.insert("latency".into(), self.latency.json());
        fields.insert("service".into(), self.service.json());
        fields.insert("lag".into(), self.lag.json());
        fields
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(status: u16, backlog: u64) -> Tally {
        let mut tally = Tally { backlog_peak: backlog, ..Tally::default() };
        tally.counters.sent = 2;
        tally.fault(Fault::Closed, 1);
        tally.status(status);
        tally.service.record(1_000_000, 1);
        tally
    }

    #[test]
    fn workers_beside_each_other_add_up_and_their_backlogs_too() {
        let mut sum = tally(200, 3);
        sum.add_beside(&tally(503, 4));
        let json = sum.json();
        assert_eq!(json["sent"], 4);
        assert_eq!(json["errors"]["closed"], 2);
        assert_eq!(json["statuses"], json!({"200": 1, "503": 1}));
        assert_eq!(json["service"]["count"], 2);
        assert_eq!(json["backlog_peak"], 7);
    }

    #[test]
    fn intervals_one_after_another_keep_the_largest_backlog() {
        let mut sum = tally(200, 3);
        sum.add_after(&tally(200, 4));
        assert_eq!(sum.backlog_peak, 4);
        assert_eq!(sum.counters.sent, 4);
    }

    #[test]
    fn a_cleared_tally_is_a_new_one() {
        let mut cleared = tally(200, 3);
        cleared.clear();
        assert_eq!(cleared.json(), Tally::default().json());
    }
}
