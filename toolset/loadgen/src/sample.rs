//! Answers that are written out: a share drawn by seed over the whole load, kept in memory and written after it.
//!
//! Each request draws a key; its answer is kept while the key is below a limit. Where more come than may be kept, those
//! with the highest keys go and the limit is lowered to theirs, so that what stays is an even share of the whole load
//! however long it lasts, and no request ever waits for a file.

use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::connection::NOT_KEPT;
use crate::requests::Requests;
use crate::response::{Capture, headers};

/// Bits of a key.
const KEY_BITS: u32 = 31;

/// One answer; times in nanoseconds of the monotonic clock.
#[derive(Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sample {
    pub key: u32,        // drawn for it: the order of samples is that of their keys
    pub connection: u32, // the number of its connection among all of the load
    pub request: u32,    // the place of its request
    pub sequence: u64,   // which answer of this connection it is, from 0, counted since it was first opened
    pub intended: u64,   // when it should have been sent, when it was, and when its last byte came
    pub sent: u64,
    pub received: u64,
    pub status: u16,
    pub size: u64, // its bytes on the wire
    pub head: Box<[u8]>,
    pub body: Box<[u8]>, // its body without framing
}

impl Sample {
    /// With a copy of what was kept.
    pub fn with(self, capture: &Capture) -> Self {
        Self { head: capture.head.as_slice().into(), body: capture.body.as_slice().into(), ..self }
    }

    fn bytes(&self) -> usize {
        size_of::<Self>() + self.head.len() + self.body.len()
    }
}

/// What one worker keeps.
#[derive(Debug, Default)]
pub struct Samples {
    heap: BinaryHeap<Sample>, // the highest key on top
    limit: u32,
    most: usize,
    bytes: usize,
    room: usize,
}

impl Samples {
    /// A share of the answers, at most so many and so many bytes.
    pub fn new(share: f64, most: usize, room: usize) -> Self {
        let limit = (share * f64::from(1u32 << KEY_BITS)) as u32;
        Self { heap: BinaryHeap::new(), limit, most, bytes: 0, room }
    }

    /// The key of a request, from random bits.
    #[inline]
    pub fn key(&self, bits: impl FnOnce() -> u64) -> u32 {
        if self.limit == 0 {
            return NOT_KEPT;
        }
        let key = (bits() >> (u64::BITS - KEY_BITS)) as u32;
        if key < self.limit { key } else { NOT_KEPT }
    }

    /// Keep an answer, if its key is still below the limit.
    pub fn put(&mut self, sample: Sample, capture: &Capture) {
        if sample.key >= self.limit {
            return;
        }
        let sample = sample.with(capture);
        self.bytes += sample.bytes();
        self.heap.push(sample);
        while self.heap.len() > self.most || self.bytes > self.room {
            let Some(gone) = self.heap.pop() else { return };
            self.bytes -= gone.bytes();
            self.limit = self.limit.min(gone.key);
        }
    }

    /// The samples of all workers under the lowest of their limits: one share for the whole load, in order of time.
    pub fn together(workers: Vec<Self>) -> Vec<Sample> {
        let limit = workers.iter().map(|worker| worker.limit).min().unwrap_or_default();
        let all = workers.into_iter().flat_map(|worker| worker.heap.into_vec());
        let mut kept: Vec<Sample> = all.filter(|sample| sample.key < limit).collect();
        kept.sort_unstable_by_key(|sample| (sample.received, sample.connection, sample.sequence));
        kept
    }
}

fn line(sample: &Sample, requests: &Requests) -> Value {
    let start = sample.head.iter().position(|&byte| byte == b'\n').map_or(0, |end| end + 1); // after the status line
    let latin1 = |bytes: &[u8]| bytes.iter().map(|&byte| char::from(byte)).collect::<String>();
    let headers = headers(&sample.head[start..], |name, value| (name.to_owned(), latin1(value)));
    json!({
        "connection": sample.connection,
        "sequence": sample.sequence,
        "request": sample.request,
        "target": requests.at(sample.request).target,
        "intended_ns": sample.intended,
        "sent_ns": sample.sent,
        "received_ns": sample.received,
        "status": sample.status,
        "size_bytes": sample.size,
        "headers": headers.unwrap_or_default(),
        "body_base64": STANDARD.encode(&sample.body),
    })
}

/// The file for answers, made before the load so that nobody loads in vain.
pub fn create(path: &Path) -> Result<BufWriter<File>, String> {
    let file = File::create(path).map_err(|error| format!("--answers {}: {error}", path.display()))?;
    Ok(BufWriter::with_capacity(1 << 20, file))
}

/// A line for each.
pub fn write(file: &mut impl Write, samples: &[Sample], requests: &Requests) -> std::io::Result<()> {
    for sample in samples {
        serde_json::to_writer(&mut *file, &line(sample, requests))?;
        file.write_all(b"\n")?;
    }
    file.flush()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrivals::Random;

    /// After so many answers of 100 bytes each, by number.
    fn fed(mut samples: Samples, answers: u64, seed: u64) -> Samples {
        let mut random = Random::new(seed);
        let capture = Capture { head: vec![b'h'; 40], body: vec![b'b'; 60] };
        for number in 0..answers {
            let key = samples.key(|| random.bits());
            samples.put(Sample { key, sequence: number, received: number, ..Sample::default() }, &capture);
        }
        samples
    }

    /// The numbers of those that are kept.
    fn kept(samples: Samples, answers: u64, seed: u64) -> Vec<u64> {
        Samples::together(vec![fed(samples, answers, seed)]).iter().map(|sample| sample.sequence).collect()
    }

    #[test]
    fn all_none_or_a_share_is_kept() {
        for (share, least, most) in [(0.0, 0, 0), (0.1, 900, 1100), (1.0, 10_000, 10_000)] {
            let count = kept(Samples::new(share, usize::MAX, usize::MAX), 10_000, 1).len();
            assert!((least..=most).contains(&count), "{share}: {count}");
        }
    }

    #[test]
    fn both_limits_hold_and_what_stays_is_spread_over_the_whole_load() {
        for (most, room) in [(1000, usize::MAX), (usize::MAX, 1000 * (size_of::<Sample>() + 100))] {
            let numbers = kept(Samples::new(1.0, most, room), 100_000, 2);
            assert_eq!(numbers.len(), 1000);
            assert!(numbers.is_sorted());
            for tenth in 0..10 {
                let range = tenth * 10_000..(tenth + 1) * 10_000;
                let count = numbers.iter().filter(|&number| range.contains(number)).count();
                assert!((60..140).contains(&count), "{count} in tenth {tenth}");
            }
        }
    }

    #[test]
    fn a_seed_keeps_the_same_again_and_another_others() {
        let draw = |seed| kept(Samples::new(0.5, 100, usize::MAX), 5000, seed);
        assert_eq!(draw(3), draw(3));
        assert_ne!(draw(3), draw(4));
    }

    #[test]
    fn workers_have_one_share_together() {
        let worker = || Samples::new(1.0, 100, usize::MAX);
        let (full, idle) = (fed(worker(), 10_000, 5), fed(worker(), 100, 6));
        let limit = full.limit;
        let all = Samples::together(vec![full, idle]);
        assert!(all.iter().all(|sample| sample.key < limit));
        assert!((100..110).contains(&all.len()), "{}", all.len());
    }

    #[test]
    fn a_line_holds_headers_in_order_and_the_body_as_it_was() {
        let capture = Capture {
            head: b"HTTP/1.1 200 OK\r\nServer: a\xe9\r\nContent-Length: 2\r\n\r\n".to_vec(),
            body: vec![0, 255],
        };
        let sample = Sample { connection: 3, sequence: 7, status: 200, size: 50, ..Sample::default() }.with(&capture);
        let mut out = Vec::new();
        write(&mut out, &[sample], &Requests::one("/x", "")).unwrap();
        let line: Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(line["headers"], json!([["Server", "a\u{e9}"], ["Content-Length", "2"]]));
        assert_eq!(
            (&line["body_base64"], &line["status"], &line["sequence"]),
            (&"AP8=".into(), &200.into(), &7.into())
        );
    }
}
