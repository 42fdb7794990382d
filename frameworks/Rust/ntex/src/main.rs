//! Implements the benchmark's test types with ntex. Each usable CPU has a worker with a pipelined PostgreSQL
//! connection.

mod database;
mod random;
mod routes;
mod settings;
mod upstream;

use std::error::Error;
use std::thread;

use moka::future::Cache;
use ntex::SharedCfg;
use ntex::http::HttpServiceConfig;
use ntex::time::Seconds;
use ntex::web::{App, HttpServer, middleware::DefaultHeaders};

use crate::database::Database;
use crate::settings::Settings;
use crate::upstream::Upstream;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const BACKLOG: i32 = 4096;
const ROWS: u64 = 10_000;
/// Longer than any load lasts, so that idle connections stay open.
const KEEP_ALIVE: Seconds = Seconds(300);
/// How long a stopping server waits for requests in progress.
const GRACE: Seconds = Seconds(3);

#[ntex::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let settings = Settings::from_environment()?;
    let address = (settings.host.clone(), settings.port);
    let upstream = settings.upstream.as_deref().map(reqwest::Url::parse).transpose()?;
    let workers = thread::available_parallelism()?.get(); // the CPUs in the affinity mask
    let cache = Cache::new(ROWS);
    println!("listening on {}:{}", address.0, address.1);
    // Each worker calls this closure once, on the worker's runtime.
    HttpServer::new(async move || {
        App::new()
            .middleware(DefaultHeaders::new().header("Server", "ntex"))
            .state(routes::Context {
                database: Database::connecting(settings.database.clone()),
                cache: cache.clone(),
                upstream: upstream
                    .clone()
                    .map(|url| Upstream::new(url, workers).expect("the client's settings are valid")),
            })
            .configure(routes::configure)
    })
    .workers(workers)
    .backlog(BACKLOG)
    .config(SharedCfg::new("tfb").add(HttpServiceConfig::new().set_keepalive(KEEP_ALIVE)))
    .shutdown_timeout(GRACE)
    .bind(address)?
    .run()
    .await?;
    Ok(())
}
