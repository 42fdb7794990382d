//! Lines on standard input, signals, and the loop around a server until one of them ends it.

use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

use serde_json::Value;
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::server::{Answers, Server};

const STDIN: u64 = 0;
const SIGNAL: u64 = 1;
const LINE_LIMIT: usize = 4096;

/// Serve until standard input or a signal ends it; every complete line goes to `line`.
pub fn serve<A: Answers>(
    mut server: Server,
    answers: &mut A,
    mut line: impl FnMut(&str, &mut A, &Server) -> Result<(), String>,
) -> Result<(), String> {
    let text = |error: std::io::Error| error.to_string();
    let (mut signals, end) = UnixStream::pair().map_err(text)?;
    signals.set_nonblocking(true).map_err(text)?;
    for signal in [SIGINT, SIGTERM] {
        signal_hook::low_level::pipe::register(signal, end.try_clone().map_err(text)?).map_err(text)?;
    }
    let stdin = std::io::stdin();
    // Refused by the kernel for a plain file or /dev/null: nothing will be said, and a signal ends it.
    let _ = server.watch(stdin.as_fd(), STDIN);
    server.watch(signals.as_fd(), SIGNAL).map_err(text)?;
    let (mut spoke, mut typed) = (Vec::new(), Vec::new());
    loop {
        server.turn(answers, &mut spoke).map_err(text)?;
        if spoke.contains(&SIGNAL) {
            let _ = signals.read(&mut [0; 16]);
            return Ok(());
        }
        if spoke.contains(&STDIN) {
            let mut bytes = [0; LINE_LIMIT];
            match rustix::io::read(stdin.as_fd(), &mut bytes) {
                Ok(0) | Err(_) => return Ok(()),
                Ok(count) => typed.extend_from_slice(&bytes[..count]),
            }
            while let Some(end) = typed.iter().position(|&byte| byte == b'\n') {
                let said: Vec<u8> = typed.drain(..=end).collect();
                line(String::from_utf8_lossy(&said).trim(), answers, &server)?;
            }
            if typed.len() > LINE_LIMIT {
                return Err("a line on standard input without end".into());
            }
        }
    }
}

/// Print one JSON line.
pub fn say(value: &Value) -> Result<(), String> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{value}").and_then(|()| out.flush()).map_err(|error| format!("standard output: {error}"))
}
