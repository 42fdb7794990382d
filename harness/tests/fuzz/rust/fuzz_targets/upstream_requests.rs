//! The upstream server counts the same requests however the stream is split.

#![no_main]

use libfuzzer_sys::fuzz_target;
use memchr::memmem::{Finder, find_iter};
use tfb_fuzz::{pieces, split_input};
use upstream::server::count_requests;

fuzz_target!(|data: &[u8]| {
    let Some((max_length, seed, stream)) = split_input(data) else { return };
    let (end, mut carry) = (Finder::new(b"\r\n\r\n"), Vec::new());
    let count: usize =
        pieces(stream, max_length, seed).into_iter().map(|piece| count_requests(&end, &mut carry, piece)).sum();
    assert_eq!(count, find_iter(stream, b"\r\n\r\n").count());
    assert!(stream.ends_with(&carry));
});
