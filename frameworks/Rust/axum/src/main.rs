//! The benchmark's tests on axum. Each usable CPU has a thread with a separate runtime, listening socket and pipelined
//! PostgreSQL connection.

mod database;
mod random;
mod routes;
mod settings;
mod upstream;

use std::error::Error;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use axum::serve::ListenerExt;
use moka::future::Cache;
use socket2::{Domain, Socket, Type};
use tokio::signal::unix::{SignalKind, signal};

use crate::database::Database;
use crate::routes::App;
use crate::settings::Settings;
use crate::upstream::Upstream;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const BACKLOG: i32 = 4096;
const ROWS: u64 = 10_000;
/// Time limit for requests in progress after a stop signal.
const GRACE: Duration = Duration::from_secs(3);

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
    let settings = Settings::from_environment()?;
    let address = (settings.host.as_str(), settings.port)
        .to_socket_addrs()?
        .next()
        .ok_or_else(|| format!("HOST {:?} has no address", settings.host))?;
    // Counts the CPUs of the affinity mask, not all CPUs of the machine.
    let workers = thread::available_parallelism()?.get();
    let listeners = (0..workers).map(|_| listen(address)).collect::<Result<Vec<_>, _>>()?;
    let cache = Cache::new(ROWS);
    println!("listening on {address}, {workers} threads");
    thread::scope(|scope| -> Result<(), Box<dyn Error>> {
        let threads: Vec<_> = listeners
            .into_iter()
            .map(|listener| {
                let (settings, cache) = (&settings, cache.clone());
                scope.spawn(move || serve(listener, settings, cache).map_err(|error| error.to_string()))
            })
            .collect();
        for thread in threads {
            thread.join().map_err(|_| "a thread panicked")??;
        }
        Ok(())
    })
}

/// Opens a listening socket. The kernel distributes connections among all sockets of the port (SO_REUSEPORT).
fn listen(address: SocketAddr) -> Result<TcpListener, String> {
    let listener = || -> std::io::Result<TcpListener> {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
        socket.set_reuse_address(true)?;
        socket.set_reuse_port(true)?;
        socket.set_nonblocking(true)?;
        socket.bind(&address.into())?;
        socket.listen(BACKLOG)?;
        Ok(socket.into())
    };
    listener().map_err(|error| format!("cannot listen on {address}: {error}"))
}

#[tokio::main(flavor = "current_thread")]
async fn serve(
    listener: TcpListener,
    settings: &Settings,
    cache: Cache<i32, database::World>,
) -> Result<(), Box<dyn Error>> {
    let app = App {
        database: Database::connecting(settings.database.clone()),
        cache,
        upstream: settings.upstream.as_deref().map(Upstream::new).transpose()?,
    };
    let listener = tokio::net::TcpListener::from_std(listener)?.tap_io(|stream| {
        let _ = stream.set_nodelay(true); // the first read detects a closed connection
    });
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let (asked, stopping) = tokio::sync::oneshot::channel();
    let server = axum::serve(listener, routes::router(app)).with_graceful_shutdown(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        let _ = asked.send(());
    });
    let overdue = async {
        let _ = stopping.await;
        tokio::time::sleep(GRACE).await;
    };
    tokio::select! {
        ended = server => ended?,
        () = overdue => {}
    }
    Ok(())
}
