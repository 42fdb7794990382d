//! Parsing yields the same responses however the stream is split, with and without the head cache.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tfb_fuzz::response::{CapturedResponse, HeadCache, Reader, Response, Violation};
use tfb_fuzz::{pieces, split_input};

/// Everything that a reader reports about a stream.
#[derive(Debug, Default, PartialEq, Eq)]
struct Report {
    responses: Vec<(Response, CapturedResponse)>,
    violation: Option<Violation>,
    idle: bool,
    ended: Option<Response>,
}

fn read(pieces: &[&[u8]], bodiless: bool, cached: bool) -> Report {
    let mut report = Report::default();
    let mut reader = Reader::default();
    reader.bodiless = bodiless;
    let (mut cache, mut capture) = (HeadCache::default(), CapturedResponse::default());
    for piece in pieces {
        let mut data = *piece;
        while !data.is_empty() {
            if !cached {
                cache = HeadCache::default();
            }
            match reader.advance(data, &mut cache, Some(&mut capture)) {
                Ok((used, response)) => {
                    assert!(used > 0 && used <= data.len());
                    assert!(response.is_some() || used == data.len());
                    data = &data[used..];
                    report.responses.extend(response.map(|response| (response, std::mem::take(&mut capture))));
                }
                Err(violation) => {
                    report.violation = Some(violation);
                    return report;
                }
            }
        }
    }
    report.idle = reader.idle();
    report.ended = reader.end();
    report
}

fuzz_target!(|data: &[u8]| {
    let Some((max_length, seed, stream)) = split_input(data) else { return };
    let bodiless = seed >> 15 == 1;
    let expected = read(&[stream], bodiless, true);
    assert_eq!(expected, read(&pieces(stream, max_length, seed), bodiless, true), "pieces of up to {max_length} bytes");
    assert_eq!(expected, read(&pieces(stream, max_length, seed + 1), bodiless, false), "without a cache");

    let sizes: u64 = expected.responses.iter().map(|(response, _)| response.size).sum();
    let rest = expected.ended.map_or(0, |response| response.size);
    assert!(sizes + rest <= stream.len() as u64);
    if expected.violation.is_none() && (expected.idle || expected.ended.is_some()) {
        assert_eq!(sizes + rest, stream.len() as u64);
    }
    for (response, capture) in &expected.responses {
        assert!((200..1000).contains(&response.status));
        assert!(capture.head.len() + capture.body.len() <= response.size as usize);
    }
});
