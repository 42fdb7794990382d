//! The modules under test, and what the targets share.
//!
//! The load generator is a program and has no library, so its modules are compiled into this crate.

#![allow(dead_code, unused_imports)]

#[path = "../../../../../toolset/loadgen/src"]
mod loadgen {
    pub mod arguments;
    pub mod arrivals;
    pub mod clock;
    pub mod requests;
    pub mod response;
    pub mod scenario;
}

pub use loadgen::{arguments, arrivals, clock, requests, response, scenario};

/// Cut a stream into pieces of 1 to `most` bytes, drawn by `seed`.
pub fn pieces(mut stream: &[u8], most: usize, mut seed: u64) -> Vec<&[u8]> {
    let mut found = Vec::new();
    while !stream.is_empty() {
        // Knuth's MMIX generator; its upper bits are the random ones.
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let length = (1 + (seed >> 33) as usize % most).min(stream.len());
        let (piece, rest) = stream.split_at(length);
        found.push(piece);
        stream = rest;
    }
    found
}

/// Take the first two bytes of an input: the size of the largest piece, and a seed for the cuts. The rest is the stream.
pub fn cuts(data: &[u8]) -> Option<(usize, u64, &[u8])> {
    let (&[size, seed], stream) = data.split_first_chunk::<2>()?;
    Some((1 << (size % 18), u64::from(seed) << 8 | u64::from(size), stream))
}
