//! Implements the benchmark's test types with axum. Each usable CPU has a thread with a separate runtime, listening
//! socket and pipelined PostgreSQL connection.

mod database;
mod items;
mod random;
mod routes;
mod settings;
mod upstream;

use std::error::Error;
use std::fmt::Display;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use axum::serve::ListenerExt;
use axum_server::Handle;
use axum_server::accept::NoDelayAcceptor;
use axum_server::tls_rustls::{RustlsAcceptor, RustlsConfig};
use moka::future::Cache;
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use socket2::{Domain, Socket, Type};
use tokio::signal::unix::{SignalKind, signal};

use crate::database::Database;
use crate::routes::App;
use crate::settings::{Settings, Tls};
use crate::upstream::Upstream;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const BACKLOG: i32 = 4096;
const ROWS: u64 = 10_000;
/// How long a stopping server waits for requests in progress.
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
    // available_parallelism counts the CPUs in the affinity mask, not all of the machine's CPUs.
    let workers = thread::available_parallelism()?.get();
    let listeners = (0..workers).map(|_| listen(address)).collect::<Result<Vec<_>, _>>()?;
    let shared = Shared {
        cache: Cache::new(ROWS),
        data_set: settings.dataset.as_deref().map(items::read).transpose()?,
        tls: settings.tls.as_ref().map(tls_config).transpose()?,
        workers,
    };
    println!("listening on {address}, {workers} threads");
    thread::scope(|scope| -> Result<(), Box<dyn Error>> {
        let threads: Vec<_> = listeners
            .into_iter()
            .map(|listener| {
                let (settings, shared) = (&settings, shared.clone());
                scope.spawn(move || serve(listener, settings, shared).map_err(|error| error.to_string()))
            })
            .collect();
        for thread in threads {
            thread.join().map_err(|_| "a thread panicked")??;
        }
        Ok(())
    })
}

/// State shared by all threads.
#[derive(Clone)]
struct Shared {
    cache: Cache<i32, database::World>,
    data_set: items::DataSet,
    tls: Option<Arc<ServerConfig>>,
    workers: usize,
}

/// Returns the TLS configuration for HTTPS. ALPN selects HTTP/2 or HTTP/1.1.
fn tls_config(tls: &Tls) -> Result<Arc<ServerConfig>, String> {
    let error = |path: &Path, error: &dyn Display| format!("{}: {error}", path.display());
    let certificates = CertificateDer::pem_file_iter(&tls.certificate)
        .and_then(Iterator::collect)
        .map_err(|cause| error(&tls.certificate, &cause))?;
    let key = PrivateKeyDer::from_pem_file(&tls.key).map_err(|cause| error(&tls.key, &cause))?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(certificates, key))
        .map_err(|cause| error(&tls.certificate, &cause))?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// Opens a listening socket. The kernel distributes connections among all sockets on the port (SO_REUSEPORT).
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
async fn serve(listener: TcpListener, settings: &Settings, shared: Shared) -> Result<(), Box<dyn Error>> {
    let url = settings.upstream.as_deref().map(reqwest::Url::parse).transpose()?;
    let app = App {
        database: Database::connecting(settings.database.clone()),
        cache: shared.cache,
        upstream: url.map(|url| Upstream::new(url, shared.workers)).transpose()?,
        data_set: shared.data_set,
    };
    let router = routes::router(app, settings.folder.as_deref());
    let ip = listener.local_addr()?.ip();
    let (https, cleartext) = (Handle::new(), Handle::new());
    if let (Some(tls), Some(config)) = (&settings.tls, shared.tls) {
        let acceptor = RustlsAcceptor::new(RustlsConfig::from_config(config)).acceptor(NoDelayAcceptor::new());
        let server =
            axum_server::from_tcp(listen(SocketAddr::new(ip, tls.port))?)?.acceptor(acceptor).handle(https.clone());
        tokio::spawn(server.serve(router.clone().into_make_service()));
    }
    if let Some(port) = settings.cleartext_port {
        let server = axum_server::from_tcp(listen(SocketAddr::new(ip, port))?)?.handle(cleartext.clone());
        tokio::spawn(server.acceptor(NoDelayAcceptor::new()).serve(router.clone().into_make_service()));
    }
    let listener = tokio::net::TcpListener::from_std(listener)?.tap_io(|stream| {
        let _ = stream.set_nodelay(true); // fails only if the connection is closed, which the first read detects
    });
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let (asked, stopping) = tokio::sync::oneshot::channel();
    let server = axum::serve(listener, router).with_graceful_shutdown(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        https.graceful_shutdown(Some(GRACE));
        cleartext.graceful_shutdown(Some(GRACE));
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
