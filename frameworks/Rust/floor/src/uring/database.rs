//! A thread's single PostgreSQL connection, which is reopened when lost, and the requests that wait for results.

use std::cell::{RefCell, RefMut};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::net;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use compio::BufResult;
use compio::io::{AsyncReadExt, AsyncWriteExt};
use compio::net::TcpStream;
use compio::runtime::{spawn, spawn_blocking};
use compio::time::sleep;
use rustix::net::{Shutdown, shutdown};
use slab::Slab;

use super::Thread;
use crate::postgres::{self, World};
use crate::rows::Rows;
use crate::shared::complain;

const RETRY: Duration = Duration::from_secs(1);
/// Minimum free space in the input buffer for a read, in bytes.
const BUFFER: usize = 64 * 1024;

#[derive(Default)]
pub struct Database(RefCell<State>);

#[derive(Default)]
struct State {
    connected: bool,
    /// Messages that have not been sent.
    output: Vec<u8>,
    /// Wakes the task that sends messages.
    writer: Option<Waker>,
    jobs: Slab<Job>,
    /// The job of each outstanding Sync, oldest first.
    waiting: VecDeque<usize>,
}

/// The results of an HTTP request's statements. A task waits until all results have arrived.
struct Job {
    fortunes: bool,
    /// Number of outstanding results.
    waiting: usize,
    failed: bool,
    rows: Rows,
    waker: Option<Waker>,
}

impl Database {
    /// Reads each row with a separate SELECT and Sync. Returns None if this fails.
    pub async fn worlds(&self, ids: &[i32]) -> Option<Vec<World>> {
        let rows = Rows::new(Vec::with_capacity(ids.len()));
        let select = |output: &mut Vec<u8>| ids.iter().for_each(|id| postgres::select_world(*id, output));
        let rows = self.run(ids.len(), false, rows, select).await?;
        Some(rows.worlds).filter(|worlds| worlds.len() == ids.len())
    }

    pub async fn fortunes(&self) -> Option<Rows> {
        self.run(1, true, Rows::default(), postgres::select_fortunes).await
    }

    pub async fn update(&self, worlds: &[World]) -> Option<()> {
        self.run(1, false, Rows::default(), |output| postgres::update_worlds(worlds, output)).await.map(|_| ())
    }

    /// Queues `waiting` statements, and waits for their results.
    async fn run(&self, waiting: usize, fortunes: bool, rows: Rows, add: impl FnOnce(&mut Vec<u8>)) -> Option<Rows> {
        let index = {
            let mut state = self.0.borrow_mut();
            if !state.connected {
                return None;
            }
            add(&mut state.output);
            let index = state.jobs.insert(Job { fortunes, waiting, failed: false, rows, waker: None });
            state.waiting.extend(std::iter::repeat_n(index, waiting));
            // The writer runs after the tasks that are already awake, so a single write sends all of their statements.
            if let Some(writer) = state.writer.take() {
                writer.wake();
            }
            index
        };
        poll_fn(|context| {
            let mut state = self.0.borrow_mut();
            let job = &mut state.jobs[index];
            if job.waiting > 0 {
                job.waker = Some(context.waker().clone());
                return Poll::Pending;
            }
            let job = state.jobs.remove(index);
            Poll::Ready(Some(job.rows).filter(|_| !job.failed))
        })
        .await
    }

    async fn serve(self: &Database, stream: &mut TcpStream) -> io::Result<()> {
        let mut input = Vec::with_capacity(BUFFER);
        loop {
            let BufResult(result, buffer) = stream.append(input).await;
            input = buffer;
            if result? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let mut used = 0;
            let mut state = self.0.borrow_mut();
            while let Some((kind, body, length)) = postgres::message(&input[used..]) {
                answered(&mut state, kind, body);
                used += length;
            }
            input.drain(..used);
            input.reserve(BUFFER);
        }
    }

    /// When there are unsent messages, moves them to the empty buffer `output`. Returns false if the connection has
    /// been lost.
    fn poll_output(&self, context: &Context<'_>, output: &mut Vec<u8>) -> Poll<bool> {
        let mut state = self.0.borrow_mut();
        if !state.connected {
            return Poll::Ready(false);
        }
        if state.output.is_empty() {
            state.writer = Some(context.waker().clone());
            return Poll::Pending;
        }
        std::mem::swap(&mut state.output, output);
        Poll::Ready(true)
    }

    /// Fails all outstanding statements.
    fn disconnect(&self) {
        let mut state = self.0.borrow_mut();
        state.connected = false;
        state.output.clear();
        if let Some(writer) = state.writer.take() {
            writer.wake();
        }
        for index in std::mem::take(&mut state.waiting) {
            state.jobs[index].failed = true;
            one_less(&mut state.jobs[index]);
        }
    }
}

/// Handles a message from PostgreSQL. The message belongs to the oldest outstanding statement.
fn answered(state: &mut RefMut<'_, State>, kind: u8, body: &[u8]) {
    let Some(&index) = state.waiting.front() else { return };
    let job = &mut state.jobs[index];
    match kind {
        b'D' if job.fortunes => job.failed |= job.rows.add_fortune(body).is_none(),
        b'D' => job.failed |= job.rows.add_world(body).is_none(),
        b'E' => {
            complain(format_args!("a statement failed: {}", postgres::words(body)));
            job.failed = true;
        }
        b'Z' => {
            one_less(job);
            state.waiting.pop_front();
        }
        _ => {}
    }
}

fn one_less(job: &mut Job) {
    job.waiting -= 1;
    if job.waiting == 0
        && let Some(waker) = job.waker.take()
    {
        waker.wake();
    }
}

impl Thread {
    /// Keeps a connection to PostgreSQL open. Retries every second.
    pub async fn keep_connected(self: Rc<Self>) {
        loop {
            let settings = self.shared.database.clone();
            match spawn_blocking(move || postgres::connect(&settings)).await {
                Ok(Ok(stream)) => {
                    let error = self.use_connection(stream).await.err();
                    eprintln!("lost the connection to PostgreSQL: {error:?}");
                    continue;
                }
                Ok(Err(error)) => eprintln!("no connection to PostgreSQL: {error}"),
                Err(_) => eprintln!("no connection to PostgreSQL: the handshake panicked"),
            }
            sleep(RETRY).await;
        }
    }

    async fn use_connection(self: &Rc<Self>, stream: net::TcpStream) -> io::Result<()> {
        stream.set_nonblocking(false)?;
        let mut stream = TcpStream::from_std(stream)?;
        self.database.0.borrow_mut().connected = true;
        let writer = spawn(Rc::clone(self).send_statements(stream.clone()));
        let result = self.database.serve(&mut stream).await;
        let _ = shutdown(&stream, Shutdown::Both); // ends a write that is in progress
        self.database.disconnect();
        let _ = writer.await;
        result
    }

    async fn send_statements(self: Rc<Self>, mut stream: TcpStream) {
        let mut output = Vec::new();
        while poll_fn(|context| self.database.poll_output(context, &mut output)).await {
            let BufResult(result, buffer) = stream.write_all(output).await;
            output = buffer;
            output.clear();
            if result.is_err() {
                let _ = shutdown(&stream, Shutdown::Both); // ends the read
                return;
            }
        }
    }
}
