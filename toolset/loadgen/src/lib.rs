//! An HTTP/1.1 load generator for one server: open loop with latency from the intended send time, or closed loop.
//!
//! `control` talks with whoever started it, `worker` makes the load, one thread each. A scenario of dependent requests
//! is read by `scenario` and made by `play`. `opening` is what both do before a load.

pub mod arguments;
pub mod arrivals;
pub mod clock;
pub mod connection;
pub mod control;
pub mod distribution;
pub mod limits;
pub mod lines;
pub mod listening;
pub mod opening;
pub mod play;
pub mod reports;
pub mod request;
pub mod response;
pub mod sample;
pub mod scenario;
pub mod tally;
pub mod worker;
