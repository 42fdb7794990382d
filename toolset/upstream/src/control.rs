//! A server's main loop, which also handles signals and commands on standard input.

use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

use serde_json::Value;
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::server::{Responder, Server};

const STDIN: u64 = 0;
const SIGNAL: u64 = 1;
const LINE_LIMIT: usize = 4096;

/// Serve until standard input ends or a signal arrives. Each complete input line is passed to `handle_line`.
pub fn serve<R: Responder>(
    mut server: Server,
    responder: &mut R,
    mut handle_line: impl FnMut(&str, &mut R, &Server) -> Result<(), String>,
) -> Result<(), String> {
    let message = |error: std::io::Error| error.to_string();
    let (mut signals, end) = UnixStream::pair().map_err(message)?;
    signals.set_nonblocking(true).map_err(message)?;
    for signal in [SIGINT, SIGTERM] {
        signal_hook::low_level::pipe::register(signal, end.try_clone().map_err(message)?).map_err(message)?;
    }
    let stdin = std::io::stdin();
    // epoll rejects regular files and /dev/null. If standard input is one of these, only a signal stops the server.
    let _ = server.watch(stdin.as_fd(), STDIN);
    server.watch(signals.as_fd(), SIGNAL).map_err(message)?;
    let (mut readable, mut input) = (Vec::new(), Vec::new());
    loop {
        server.poll(responder, &mut readable).map_err(message)?;
        if readable.contains(&SIGNAL) {
            let _ = signals.read(&mut [0; 16]);
            return Ok(());
        }
        if readable.contains(&STDIN) {
            let mut bytes = [0; LINE_LIMIT];
            match rustix::io::read(stdin.as_fd(), &mut bytes) {
                Ok(0) | Err(_) => return Ok(()),
                Ok(count) => input.extend_from_slice(&bytes[..count]),
            }
            while let Some(end) = input.iter().position(|&byte| byte == b'\n') {
                let line: Vec<u8> = input.drain(..=end).collect();
                handle_line(String::from_utf8_lossy(&line).trim(), responder, &server)?;
            }
            if input.len() > LINE_LIMIT {
                return Err(format!("standard input: line longer than {LINE_LIMIT} bytes"));
            }
        }
    }
}

/// Print a JSON line and flush standard output.
pub fn print_line(value: &Value) -> Result<(), String> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{value}").and_then(|()| out.flush()).map_err(|error| format!("standard output: {error}"))
}
