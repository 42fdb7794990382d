//! A single-threaded HTTP/1.1 server of GET requests that holds thousands of answers back at once, each for its own time.
//!
//! `server` moves the bytes and keeps the time; an `Answers` decides what is said and when.

pub mod clock;
pub mod control;
pub mod server;
