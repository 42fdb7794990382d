//! The modules under test, and helpers for fuzz targets.
//!
//! The load generator has no library, so this crate includes its modules by path.

#![allow(dead_code, unused_imports)]

#[path = "../../../../../toolset/loadgen/src"]
mod loadgen {
    pub mod arguments;
    pub mod clock;
    pub mod http2;
    pub mod random;
    pub mod requests;
    pub mod response;
    pub mod scenario;
    pub mod schedule;
    pub mod transport;
    pub mod websocket;
}

pub use loadgen::{arguments, clock, http2, random, requests, response, scenario, schedule, transport, websocket};

/// Split a stream into pieces of 1 to `max_length` bytes. `seed` determines the lengths.
pub fn pieces(mut stream: &[u8], max_length: usize, mut seed: u64) -> Vec<&[u8]> {
    let mut pieces = Vec::new();
    while !stream.is_empty() {
        // Knuth's MMIX generator. Only the upper bits are random enough.
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let length = (1 + (seed >> 33) as usize % max_length).min(stream.len());
        let (piece, rest) = stream.split_at(length);
        pieces.push(piece);
        stream = rest;
    }
    pieces
}

/// Return a fuzz input's maximum piece length (from byte 0), seed (from bytes 0 and 1) and stream (the rest).
pub fn split_input(data: &[u8]) -> Option<(usize, u64, &[u8])> {
    let (&[size, seed], stream) = data.split_first_chunk::<2>()?;
    Some((1 << (size % 18), u64::from(seed) << 8 | u64::from(size), stream))
}
