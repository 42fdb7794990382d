//! A single-threaded HTTP/1.1 server for GET requests, which can delay thousands of responses at the same time.
//!
//! `server` handles connections and timers; a `Responder` decides the contents and the time of each response.

pub mod clock;
pub mod control;
pub mod server;
