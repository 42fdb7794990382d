//! The io_uring variant: a thread's event loop on compio, a runtime that performs I/O through io_uring.

mod calls;
mod client;
mod database;

use std::cell::{Cell, RefCell};
use std::io;
use std::net;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use compio::BufResult;
use compio::driver::ProactorBuilder;
use compio::io::AsyncRead;
use compio::net::{TcpListener, TcpStream};
use compio::runtime::fd::AsyncFd;
use compio::runtime::{Runtime, spawn};
use compio::time::sleep;
use rustix::net::{Shutdown, shutdown};
use slab::Slab;

use crate::shared::Shared;
use crate::waker::Waker;

use self::calls::Upstream;
use self::database::Database;

/// Number of tasks that run before the thread checks again for completed I/O operations.
const TASKS: usize = 1024;
/// Interval at which a stopping thread checks for remaining clients, and delay after a failed accept.
const CHECK: Duration = Duration::from_millis(10);

pub struct Thread {
    shared: Arc<Shared>,
    database: Database,
    upstream: Upstream,
    clients: RefCell<Slab<TcpStream>>,
    date: Cell<[u8; 29]>,
}

/// Runs until a stop signal has arrived and all clients have disconnected.
pub fn run(listener: net::TcpListener, shared: Arc<Shared>, waker: Waker) -> io::Result<()> {
    let mut proactor = ProactorBuilder::new();
    // Only this thread submits I/O operations. The kernel defers completion work until the thread waits for
    // completions, so it does not interrupt the thread.
    proactor.single_issuer(true).defer_taskrun(true);
    let runtime = Runtime::builder().with_proactor(proactor).event_interval(TASKS).build().map_err(explain)?;
    runtime.block_on(async {
        let thread = Rc::new(Thread {
            database: Database::default(),
            upstream: Upstream::new(shared.upstream_connections),
            shared,
            clients: RefCell::default(),
            date: Cell::new(date(SystemTime::now())),
        });
        spawn(Rc::clone(&thread).refresh_date()).detach();
        spawn(Rc::clone(&thread).keep_connected()).detach();
        let accepting = spawn(Rc::clone(&thread).accept(TcpListener::from_std(listener)?));
        spawn(async move {
            let BufResult(result, _) = AsyncFd::new(waker)?.read([0; 8]).await;
            result?;
            accepting.cancel().await;
            thread.stop().await;
            Ok(())
        })
        .await
        .map_err(|_| io::Error::other("a task panicked"))?
    })
}

fn explain(error: io::Error) -> io::Error {
    io::Error::other(format!(
        "cannot set up io_uring: {error}; the server needs Linux 6.1 and permission to use io_uring; check the sysctl \
         kernel.io_uring_disabled and, in a container, the seccomp profile (tfb: --allow NAME=io_uring)"
    ))
}

fn date(now: SystemTime) -> [u8; 29] {
    let mut date = [0; 29];
    date.copy_from_slice(httpdate::fmt_http_date(now).as_bytes());
    date
}

impl Thread {
    /// Updates the date at the beginning of every second.
    async fn refresh_date(self: Rc<Self>) {
        loop {
            let now = SystemTime::now();
            self.date.set(date(now));
            let fraction = now.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.subsec_nanos());
            sleep(Duration::from_secs(1) - Duration::from_nanos(fraction.into())).await;
        }
    }

    async fn accept(self: Rc<Self>, listener: TcpListener) {
        loop {
            match listener.accept().await {
                Ok((stream, _)) => spawn(client::serve(Rc::clone(&self), stream)).detach(),
                Err(error) => {
                    eprintln!("cannot accept a connection: {error}");
                    sleep(CHECK).await;
                }
            }
        }
    }

    /// Stops reading from the clients, and waits until they have received the responses to their requests.
    async fn stop(&self) {
        for (_, stream) in &*self.clients.borrow() {
            let _ = shutdown(stream, Shutdown::Read); // fails if the client has disconnected
        }
        while !self.clients.borrow().is_empty() {
            sleep(CHECK).await;
        }
    }
}
