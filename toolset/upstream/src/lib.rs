//! A single-threaded HTTP/1.1 server for GET requests, which can delay thousands of responses at the same time.
//!
//! Module `server` handles connections and timers.
//! A `Responder` decides what each response contains and when it is sent.

pub mod clock;
pub mod control;
pub mod server;
