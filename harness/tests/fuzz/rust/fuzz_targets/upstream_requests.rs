//! The upstream counts the same requests in one piece and in any other pieces.

#![no_main]

use libfuzzer_sys::fuzz_target;
use memchr::memmem::{Finder, find_iter};
use tfb_fuzz::{cuts, pieces};
use upstream::server::split;

fuzz_target!(|data: &[u8]| {
    let Some((most, seed, stream)) = cuts(data) else { return };
    let (end, mut carry) = (Finder::new(b"\r\n\r\n"), Vec::new());
    let count: usize = pieces(stream, most, seed).into_iter().map(|piece| split(&end, &mut carry, piece)).sum();
    assert_eq!(count, find_iter(stream, b"\r\n\r\n").count());
    assert!(stream.ends_with(&carry));
});
