//! A random sample of the responses, stored in memory during the load and written to a file afterwards.
//!
//! Each request gets a random key, and the response is stored if the key is below a limit. When the memory is full, the
//! responses with the highest keys are dropped and the limit is lowered. The sample therefore stays uniform over the
//! whole load, however long the load is, and no request waits for a file.

use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::connection::NOT_SAMPLED;
use crate::requests::RequestTable;
use crate::response::{CapturedResponse, headers};

const KEY_BITS: u32 = 31;

/// A sampled response. Times are in nanoseconds on the monotonic clock.
#[derive(Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sample {
    pub key: u32,        // random; samples with the lowest keys are retained
    pub connection: u32, // number of the connection, unique across all workers
    pub request: u32,    // index into the request table
    pub sequence: u64,   // index among the connection's responses, counted across reconnections
    pub intended: u64,   // time at which the request was due
    pub sent: u64,
    pub received: u64,
    pub status: u16,
    pub size: u64, // bytes on the wire
    pub head: Box<[u8]>,
    pub body: Box<[u8]>, // without framing
}

impl Sample {
    /// Copy a captured response into the sample.
    pub fn with_capture(self, capture: &CapturedResponse) -> Self {
        Self { head: capture.head.as_slice().into(), body: capture.body.as_slice().into(), ..self }
    }

    fn bytes(&self) -> usize {
        size_of::<Self>() + self.head.len() + self.body.len()
    }
}

/// The sampler of a worker.
#[derive(Debug, Default)]
pub struct Sampler {
    heap: BinaryHeap<Sample>, // highest key on top
    limit: u32,
    max_count: usize,
    bytes: usize,
    max_bytes: usize,
}

impl Sampler {
    /// Create a sampler for a share of the responses, limited in count and bytes.
    pub fn new(share: f64, max_count: usize, max_bytes: usize) -> Self {
        let limit = (share * f64::from(1u32 << KEY_BITS)) as u32;
        Self { heap: BinaryHeap::new(), limit, max_count, bytes: 0, max_bytes }
    }

    /// Draw a request's key from random bits. Return `NOT_SAMPLED` for a key that is not below the limit.
    #[inline]
    pub fn key(&self, bits: impl FnOnce() -> u64) -> u32 {
        if self.limit == 0 {
            return NOT_SAMPLED;
        }
        let key = (bits() >> (u64::BITS - KEY_BITS)) as u32;
        if key < self.limit { key } else { NOT_SAMPLED }
    }

    /// Add a response if the key is still below the limit.
    pub fn add(&mut self, sample: Sample, capture: &CapturedResponse) {
        if sample.key >= self.limit {
            return;
        }
        let sample = sample.with_capture(capture);
        self.bytes += sample.bytes();
        self.heap.push(sample);
        while self.heap.len() > self.max_count || self.bytes > self.max_bytes {
            let Some(dropped) = self.heap.pop() else { return };
            self.bytes -= dropped.bytes();
            self.limit = self.limit.min(dropped.key);
        }
    }

    /// Merge the samples of all workers, ordered by the time of the response. Keep only samples with a key below every
    /// worker's limit.
    pub fn merge(workers: Vec<Self>) -> Vec<Sample> {
        let limit = workers.iter().map(|worker| worker.limit).min().unwrap_or_default();
        let candidates = workers.into_iter().flat_map(|worker| worker.heap.into_vec());
        let mut samples: Vec<Sample> = candidates.filter(|sample| sample.key < limit).collect();
        samples.sort_unstable_by_key(|sample| (sample.received, sample.connection, sample.sequence));
        samples
    }
}

fn line(sample: &Sample, requests: &RequestTable) -> Value {
    let start = sample.head.iter().position(|&byte| byte == b'\n').map_or(0, |end| end + 1); // first byte after the status line
    let latin1 = |bytes: &[u8]| bytes.iter().map(|&byte| char::from(byte)).collect::<String>();
    let headers = headers(&sample.head[start..], |name, value| (name.to_owned(), latin1(value)));
    json!({
        "connection": sample.connection,
        "sequence": sample.sequence,
        "request": sample.request,
        "target": requests.get(sample.request).target,
        "intended_ns": sample.intended,
        "sent_ns": sample.sent,
        "received_ns": sample.received,
        "status": sample.status,
        "size_bytes": sample.size,
        "headers": headers.unwrap_or_default(),
        "body_base64": STANDARD.encode(&sample.body),
    })
}

/// Create the responses file before the load, to detect errors early.
pub fn create(path: &Path) -> Result<BufWriter<File>, String> {
    let file = File::create(path).map_err(|error| format!("--responses {}: {error}", path.display()))?;
    Ok(BufWriter::with_capacity(1 << 20, file))
}

/// Write a line per sample.
pub fn write(file: &mut impl Write, samples: &[Sample], requests: &RequestTable) -> std::io::Result<()> {
    for sample in samples {
        serde_json::to_writer(&mut *file, &line(sample, requests))?;
        file.write_all(b"\n")?;
    }
    file.flush()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// Offer `count` responses of 100 bytes to a sampler.
    fn filled(mut sampler: Sampler, count: u64, seed: u64) -> Sampler {
        let mut random = Random::new(seed);
        let mut capture = CapturedResponse::new(0);
        capture.head = vec![b'h'; 40];
        capture.body = vec![b'b'; 60];
        for number in 0..count {
            let key = sampler.key(|| random.bits());
            sampler.add(Sample { key, sequence: number, received: number, ..Sample::default() }, &capture);
        }
        sampler
    }

    /// Return the sequence numbers of the sampled responses.
    fn sampled(sampler: Sampler, count: u64, seed: u64) -> Vec<u64> {
        Sampler::merge(vec![filled(sampler, count, seed)]).iter().map(|sample| sample.sequence).collect()
    }

    #[test]
    fn share_of_responses_is_sampled() {
        for (share, least, most) in [(0.0, 0, 0), (0.1, 900, 1100), (1.0, 10_000, 10_000)] {
            let count = sampled(Sampler::new(share, usize::MAX, usize::MAX), 10_000, 1).len();
            assert!((least..=most).contains(&count), "{share}: {count}");
        }
    }

    #[test]
    fn limits_hold_and_sample_stays_uniform() {
        for (max_count, max_bytes) in [(1000, usize::MAX), (usize::MAX, 1000 * (size_of::<Sample>() + 100))] {
            let numbers = sampled(Sampler::new(1.0, max_count, max_bytes), 100_000, 2);
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
    fn samples_are_reproducible_by_seed() {
        let draw = |seed| sampled(Sampler::new(0.5, 100, usize::MAX), 5000, seed);
        assert_eq!(draw(3), draw(3));
        assert_ne!(draw(3), draw(4));
    }

    #[test]
    fn workers_share_one_sampling_limit() {
        let worker = || Sampler::new(1.0, 100, usize::MAX);
        let (full, idle) = (filled(worker(), 10_000, 5), filled(worker(), 100, 6));
        let limit = full.limit;
        let all = Sampler::merge(vec![full, idle]);
        assert!(all.iter().all(|sample| sample.key < limit));
        assert!((100..110).contains(&all.len()), "{}", all.len());
    }

    #[test]
    fn line_preserves_headers_and_body() {
        let mut capture = CapturedResponse::new(0);
        capture.head = b"HTTP/1.1 200 OK\r\nServer: a\xe9\r\nContent-Length: 2\r\n\r\n".to_vec();
        capture.body = vec![0, 255];
        let sample =
            Sample { connection: 3, sequence: 7, status: 200, size: 50, ..Sample::default() }.with_capture(&capture);
        let mut out = Vec::new();
        write(&mut out, &[sample], &RequestTable::single_get("/x", "")).unwrap();
        let line: Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(line["headers"], json!([["Server", "a\u{e9}"], ["Content-Length", "2"]]));
        assert_eq!(
            (&line["body_base64"], &line["status"], &line["sequence"]),
            (&"AP8=".into(), &200.into(), &7.into())
        );
    }
}
