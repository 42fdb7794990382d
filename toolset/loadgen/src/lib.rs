//! An HTTP/1.1 load generator for one server: open loop with latency from the intended send time, or closed loop.
//!
//! `control` talks with whoever started it, `worker` makes the load, one thread each.

pub mod arguments;
pub mod arrivals;
pub mod clock;
pub mod connection;
pub mod control;
pub mod distribution;
pub mod limits;
pub mod lines;
pub mod listening;
pub mod reports;
pub mod request;
pub mod response;
pub mod sample;
pub mod tally;
pub mod worker;
