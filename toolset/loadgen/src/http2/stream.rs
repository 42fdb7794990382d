//! The streams of an HTTP/2 connection, their limits and their events.

use super::frames::{DEFAULT_WINDOW, MAX_WINDOW};
use crate::response::CapturedResponse;

/// An event for the worker. `index` is a request's position among the connection's outstanding requests, oldest first.
#[derive(Debug)]
pub enum StreamEvent {
    /// The server's first settings have arrived, so requests may be sent.
    Opened,
    /// A complete response. It is malformed if the length differs from Content-Length.
    Response { index: usize, status: u16, size: u64, malformed: bool, capture: Option<Box<CapturedResponse>> },
    /// The server reset the stream.
    Reset { index: usize },
    /// The server accepts no further requests. It has not processed the latest `unprocessed` requests.
    GoAway { unprocessed: usize },
}

/// A stream: a request in progress, and the response so far.
#[derive(Debug, Default)]
pub struct Stream {
    pub id: u32,
    pub status: u16,         // 0 before the final head
    pub size: u64,           // bytes of the response's frames so far
    pub received: u64,       // bytes of the response body so far
    pub length: Option<u64>, // the response's Content-Length
    pub bodiless: bool,      // whether the response has no body, because the request was HEAD
    pub window: i64,         // bytes that the server may still send
    pub send_window: i64,
    pub unsent: Vec<u8>, // rest of the request body, for which the server's window has no room
    pub capture: Option<Box<CapturedResponse>>,
}

/// Limits that apply to every connection.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub depth: usize,       // maximum number of concurrent streams
    pub window: u32,        // flow-control window of a stream, in bytes
    pub body: usize,        // size limit of captured bodies, in bytes
    pub shared_table: bool, // whether requests may use the server's dynamic table
}

impl Limits {
    /// Return the flow-control window of a connection, in bytes.
    pub fn connection_window(&self) -> i64 {
        (i64::from(self.window) * self.depth as i64).clamp(DEFAULT_WINDOW, MAX_WINDOW)
    }
}
