//! Writes drawn responses to a file, off the threads that make the load.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use memchr::memmem::find_iter;
use serde_json::{Value, json};

use crate::request::Capture;
use crate::response::{Response, header};

/// A response that the harness will judge.
#[derive(Debug)]
pub struct Sample<'a> {
    /// The number of the connection among all of the load.
    pub connection: u32,
    /// Which response of this connection it is, from 0, counted since it was first opened.
    pub sequence: u64,
    /// The request target.
    pub target: &'a str,
    /// When it should have been sent, when it was, and when its last byte came: nanoseconds of the monotonic clock.
    pub intended: u64,
    /// See `intended`.
    pub sent: u64,
    /// See `intended`.
    pub received: u64,
    /// Status and size.
    pub response: Response,
    /// Head and body.
    pub capture: &'a Capture,
}

/// Where workers put samples.
#[derive(Debug)]
pub struct Samples {
    sender: Option<Sender<Vec<u8>>>,
    left: AtomicU64,
    room: AtomicU64,
}

impl Samples {
    /// Without a file nothing is taken.
    pub fn none() -> Self {
        Self { sender: None, left: AtomicU64::new(0), room: AtomicU64::new(0) }
    }

    /// Write to a new file; the handle ends when all places to put samples are gone, with what went wrong.
    pub fn to_file(path: &Path, limit: u64, bytes: u64) -> Result<(Self, JoinHandle<Result<(), String>>), String> {
        let name = path.display().to_string();
        let file = File::create(path).map_err(|error| format!("--sample-file {name}: {error}"))?;
        let (sender, receiver) = channel();
        let writer = std::thread::spawn(move || {
            write_all(&receiver, file).map_err(|error| format!("--sample-file {name}: {error}"))
        });
        let (left, room) = (AtomicU64::new(limit), AtomicU64::new(bytes));
        Ok((Self { sender: Some(sender), left, room }, writer))
    }

    /// Take a sample; false when the limit has been reached.
    pub fn put(&self, sample: &Sample) -> bool {
        let Some(sender) = &self.sender else { return false };
        if !taken(&self.left, 1) {
            return false;
        }
        let mut line = serde_json::to_vec(&line(sample)).expect("strings and numbers");
        line.push(b'\n');
        taken(&self.room, line.len() as u64) && sender.send(line).is_ok()
    }
}

/// Take so many of what is left; false where there are fewer.
fn taken(left: &AtomicU64, count: u64) -> bool {
    left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(count)).is_ok()
}

fn write_all(lines: &Receiver<Vec<u8>>, file: File) -> std::io::Result<()> {
    let mut file = BufWriter::with_capacity(1 << 20, file);
    for line in lines {
        file.write_all(&line)?;
    }
    file.flush()
}

fn line(sample: &Sample) -> Value {
    let head = &sample.capture.head;
    let start = head.strip_suffix(b"\r\n\r\n").unwrap_or(head);
    let mut from = start.len();
    let mut headers = Vec::new();
    for (index, end) in find_iter(start, b"\r\n").chain([start.len()]).enumerate() {
        if index > 0 {
            if let Some((name, value)) = header(&start[from..end]) {
                headers.push(json!([String::from_utf8_lossy(name), latin1(value)]));
            }
        }
        from = (end + 2).min(start.len());
    }
    json!({
        "connection": sample.connection,
        "sequence": sample.sequence,
        "target": sample.target,
        "intended_ns": sample.intended,
        "sent_ns": sample.sent,
        "received_ns": sample.received,
        "status": sample.response.status,
        "size_bytes": sample.response.size,
        "headers": headers,
        "body_base64": STANDARD.encode(&sample.capture.body),
    })
}

fn latin1(bytes: &[u8]) -> String {
    bytes.iter().map(|&byte| char::from(byte)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(capture: &Capture) -> Sample<'_> {
        let response = Response { status: 200, close: false, size: 50, body: 2 };
        Sample { connection: 3, sequence: 7, target: "/x", intended: 1, sent: 2, received: 3, response, capture }
    }

    #[test]
    fn what_is_written_is_bounded_in_bytes() {
        let capture = Capture { head: Vec::new(), body: vec![0; 1 << 20] };
        let (sender, receiver) = channel();
        let samples = Samples { sender: Some(sender), left: AtomicU64::new(9), room: AtomicU64::new(3 << 20) };
        let put = || samples.put(&sample(&capture));
        assert_eq!([put(), put(), put()], [true, true, false]);
        assert_eq!(receiver.try_iter().count(), 2);
    }

    #[test]
    fn a_sample_holds_headers_in_order_and_the_body_as_it_was() {
        let capture = Capture {
            head: b"HTTP/1.1 200 OK\r\nServer: a\xe9\r\nContent-Length: 2\r\n\r\n".to_vec(),
            body: vec![0, 255],
        };
        let line = line(&sample(&capture));
        assert_eq!(line["headers"], json!([["Server", "a\u{e9}"], ["Content-Length", "2"]]));
        assert_eq!(line["body_base64"], "AP8=");
        assert_eq!((&line["status"], &line["sequence"]), (&json!(200), &json!(7)));
    }
}
