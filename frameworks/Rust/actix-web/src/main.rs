//! Implements the benchmark's test types with Actix Web. Each usable CPU has a worker with a pipelined PostgreSQL
//! connection.

mod database;
mod random;
mod routes;
mod settings;
mod upstream;

use std::error::Error;
use std::thread;
use std::time::Duration;

use actix_web::middleware::DefaultHeaders;
use actix_web::{App, HttpServer, web};
use moka::future::Cache;

use crate::database::Database;
use crate::settings::Settings;
use crate::upstream::Upstream;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const BACKLOG: u32 = 4096;
const ROWS: u64 = 10_000;
/// Longer than any load lasts, so that idle connections stay open.
const KEEP_ALIVE: Duration = Duration::from_secs(300);
/// How long a stopping server waits for requests in progress.
const GRACE_SECONDS: u64 = 3;

#[actix_web::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let settings = Settings::from_environment()?;
    let address = (settings.host.clone(), settings.port);
    let upstream = settings.upstream.as_deref().map(reqwest::Url::parse).transpose()?;
    let workers = thread::available_parallelism()?.get(); // the CPUs in the affinity mask
    let cache = Cache::new(ROWS);
    println!("listening on {}:{}", address.0, address.1);
    // Each worker calls this closure once, on the worker's runtime.
    HttpServer::new(move || {
        App::new()
            .wrap(DefaultHeaders::new().add(("Server", "Actix")))
            .app_data(web::Data::new(routes::Context {
                database: Database::connecting(settings.database.clone()),
                cache: cache.clone(),
                upstream: upstream
                    .clone()
                    .map(|url| Upstream::new(url, workers).expect("the client's settings are valid")),
            }))
            .configure(routes::configure)
    })
    .workers(workers)
    .backlog(BACKLOG)
    .keep_alive(KEEP_ALIVE)
    .shutdown_timeout(GRACE_SECONDS)
    .bind(address)?
    .run()
    .await?;
    Ok(())
}
