//! A stream of an HTTP/2 connection, its limits and its events.

use super::frames::{DEFAULT_WINDOW, MAX_WINDOW};
use crate::response::CapturedResponse;

/// An event for the worker. Indices count the connection's outstanding requests, oldest first.
#[derive(Debug)]
pub enum StreamEvent {
    /// The server's first settings: requests may be sent.
    Opened,
    /// A complete response. It is malformed if its length differs from Content-Length.
    Response { index: usize, status: u16, size: u64, malformed: bool, capture: Option<Box<CapturedResponse>> },
    /// The server reset the stream.
    Reset { index: usize },
    /// The server takes no further requests. It has not processed the latest `unprocessed` requests.
    GoAway { unprocessed: usize },
}

/// A request in progress.
#[derive(Debug, Default)]
pub struct Stream {
    pub id: u32,
    pub status: u16,         // 0 until the final head
    pub size: u64,           // bytes of frames
    pub received: u64,       // bytes of the body
    pub length: Option<u64>, // Content-Length
    pub bodiless: bool,      // whether the response to HEAD has a Content-Length but no body
    pub window: i64,         // bytes that the server may still send
    pub send_window: i64,
    pub unsent: Vec<u8>, // part of the request's body that waits for a window
    pub capture: Option<Box<CapturedResponse>>,
}

/// Limits that are equal for all connections.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub depth: usize,       // maximum number of concurrent streams
    pub window: u32,        // bytes that the server may send on a stream without an update
    pub body: usize,        // size limit of captured bodies, in bytes
    pub shared_table: bool, // whether requests may use the server's dynamic table
}

impl Limits {
    /// Return the number of bytes that the server may send on a connection without an update.
    pub fn connection_window(&self) -> i64 {
        (i64::from(self.window) * self.depth as i64).clamp(DEFAULT_WINDOW, MAX_WINDOW)
    }
}
