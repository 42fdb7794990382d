//! A single-threaded HTTP/1.1 server for GET requests, which can delay thousands of responses at the same time.
//!
//! Module `server` handles connections and timers.
//! A `Responder` decides the content and the send time of each response.

pub mod clock;
pub mod control;
pub mod server;
