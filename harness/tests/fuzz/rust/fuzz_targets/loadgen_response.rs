//! Responses are read alike in one piece and in any other pieces, with and without a cache of heads.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tfb_fuzz::response::{Capture, HeadCache, Reader, Response, Violation};
use tfb_fuzz::{cuts, pieces};

/// Everything that a reader showed of a stream.
#[derive(Debug, Default, PartialEq, Eq)]
struct Seen {
    responses: Vec<(Response, Capture)>,
    violation: Option<Violation>,
    idle: bool,
    ended: Option<Response>,
}

fn read(pieces: &[&[u8]], bodiless: bool, cached: bool) -> Seen {
    let mut seen = Seen::default();
    let mut reader = Reader::default();
    reader.bodiless = bodiless;
    let (mut cache, mut capture) = (HeadCache::default(), Capture::default());
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
                    seen.responses.extend(response.map(|response| (response, std::mem::take(&mut capture))));
                }
                Err(violation) => {
                    seen.violation = Some(violation);
                    return seen;
                }
            }
        }
    }
    seen.idle = reader.idle();
    seen.ended = reader.end();
    seen
}

fuzz_target!(|data: &[u8]| {
    let Some((most, seed, stream)) = cuts(data) else { return };
    let bodiless = seed >> 15 == 1;
    let whole = read(&[stream], bodiless, true);
    assert_eq!(whole, read(&pieces(stream, most, seed), bodiless, true), "pieces of up to {most}");
    assert_eq!(whole, read(&pieces(stream, most, seed + 1), bodiless, false), "without a cache");

    let sizes: u64 = whole.responses.iter().map(|(response, _)| response.size).sum();
    let rest = whole.ended.map_or(0, |response| response.size);
    assert!(sizes + rest <= stream.len() as u64);
    if whole.violation.is_none() && (whole.idle || whole.ended.is_some()) {
        assert_eq!(sizes + rest, stream.len() as u64);
    }
    for (response, capture) in &whole.responses {
        assert!((200..1000).contains(&response.status));
        assert!(capture.head.len() + capture.body.len() <= response.size as usize);
    }
});
