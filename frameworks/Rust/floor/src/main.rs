//! A server without a framework. It measures the floor: the cost of the machine and of PostgreSQL's protocol alone.
//! Each usable CPU has a thread with a separate epoll instance, listening socket and pipelined PostgreSQL connection.
//! With the argument `io-uring`, each thread uses io_uring instead of epoll.

mod answers;
mod connection;
mod database;
mod http;
mod postgres;
mod random;
mod rows;
mod settings;
mod shared;
mod upstream;
#[cfg(feature = "io-uring")]
mod uring;
mod waker;
mod worker;

use std::error::Error;
use std::io;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use socket2::{Domain, Socket, Type};

use crate::settings::Settings;
use crate::shared::Shared;
use crate::waker::Waker;
use crate::worker::Worker;

const BACKLOG: i32 = 4096;
/// How long a stopping server waits for requests in progress.
const GRACE: Duration = Duration::from_secs(2);

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let uring = uses_uring()?;
    let settings = Settings::from_environment()?;
    let address = (settings.host.as_str(), settings.port)
        .to_socket_addrs()?
        .next()
        .ok_or_else(|| format!("HOST {:?} has no address", settings.host))?;
    let upstream = settings.upstream.as_deref().map(upstream::Target::parse).transpose()?;
    let mut signals = Signals::new([SIGTERM, SIGINT])?;
    // available_parallelism counts the CPUs in the affinity mask, not all of the machine's CPUs.
    let workers = thread::available_parallelism()?.get();
    let shared = Arc::new(Shared::new(settings.database, upstream, workers));
    let mut threads = Vec::with_capacity(workers);
    let mut wakers = Vec::with_capacity(workers);
    for _ in 0..workers {
        // epoll needs non-blocking sockets. On these, operations of io_uring would fail instead of waiting.
        let listener = listen(address, !uring).map_err(|error| format!("cannot listen on {address}: {error}"))?;
        let (waker, shared) = (Waker::new(!uring)?, Arc::clone(&shared));
        wakers.push(waker.clone());
        threads.push(thread::spawn(move || {
            if let Err(error) = serve(uring, listener, shared, waker) {
                // With a thread missing, the benchmark would report misleading results, so exit.
                eprintln!("a thread failed: {error}");
                std::process::exit(1);
            }
        }));
    }
    println!("listening on {address}, {workers} threads");
    signals.forever().next();
    shared.stop();
    for waker in wakers {
        waker.wake();
    }
    thread::spawn(|| {
        thread::sleep(GRACE);
        std::process::exit(0);
    });
    for thread in threads {
        thread.join().map_err(|_| "a thread panicked")?;
    }
    Ok(())
}

/// Returns whether the argument selects io_uring.
fn uses_uring() -> Result<bool, String> {
    match std::env::args().nth(1).as_deref() {
        None => Ok(false),
        Some("io-uring") if cfg!(feature = "io-uring") => Ok(true),
        Some("io-uring") => Err("io-uring: this program lacks the feature; build it with --features io-uring".into()),
        Some(other) => Err(format!("unknown argument {other:?}: use io-uring, or no argument for epoll")),
    }
}

fn serve(uring: bool, listener: TcpListener, shared: Arc<Shared>, waker: Waker) -> io::Result<()> {
    #[cfg(feature = "io-uring")]
    if uring {
        return uring::run(listener, shared, waker);
    }
    debug_assert!(!uring);
    Worker::new(listener, shared, waker)?.run()
}

/// Opens a listening socket. The kernel distributes connections among all sockets on the port (SO_REUSEPORT).
fn listen(address: SocketAddr, nonblocking: bool) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(true)?;
    socket.set_nonblocking(nonblocking)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}
