//! Routes, handlers and errors.

use std::fmt::{self, Display, Formatter};
use std::time::Duration;

use askama::Template;
use futures_util::future::try_join_all;
use moka::future::Cache;
use ntex::http::StatusCode;
use ntex::web::error::{Error, ErrorBadGateway, ErrorInternalServerError, ErrorServiceUnavailable};
use ntex::web::types::{Json, Query, State};
use ntex::web::{self, HttpResponse, Route, ServiceConfig, WebResponseError, guard};
use serde::Serialize;

use crate::database::{Database, Unavailable, World, complain};
use crate::random;
use crate::upstream::Upstream;

const HELLO: &str = "Hello, World!";
const MAX_QUERIES: i64 = 500;

/// A worker's connections, and the cache shared by all workers.
pub struct Context {
    pub database: Database,
    pub cache: Cache<i32, World>,
    pub upstream: Option<Upstream>,
}

pub fn configure(config: &mut ServiceConfig) {
    config.service((
        web::resource("/json").route(get_or_head().to(json)),
        web::resource("/plaintext").route(get_or_head().to(plaintext)),
        web::resource("/db").route(get_or_head().to(db)),
        web::resource("/queries").route(get_or_head().to(queries)),
        web::resource("/cached-queries").route(get_or_head().to(cached_queries)),
        web::resource("/updates").route(get_or_head().to(updates)),
        web::resource("/fortunes").route(get_or_head().to(fortunes)),
        web::resource("/delay").route(get_or_head().to(delay)),
        web::resource("/fan-out").route(get_or_head().to(fan_out)),
    ));
}

fn get_or_head() -> Route {
    web::route().guard(guard::Any(guard::Get()).or(guard::Head()))
}

impl Display for Unavailable {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str("the database is unavailable")
    }
}

impl WebResponseError for Unavailable {
    fn status_code(&self) -> StatusCode {
        StatusCode::SERVICE_UNAVAILABLE
    }
}

/// Query parameters as pairs instead of a struct, because parameters may be repeated.
type Parameters = Query<Vec<(String, String)>>;

fn number(parameters: &Parameters, name: &str, low: i64, high: i64, fallback: i64) -> i64 {
    let first = parameters.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
    random::clamped(first, low, high, fallback)
}

fn count(parameters: &Parameters, name: &str) -> usize {
    number(parameters, name, 1, MAX_QUERIES, 1) as usize
}

#[derive(Serialize)]
struct Message {
    message: &'static str,
}

async fn json() -> Json<Message> {
    Json(Message { message: HELLO })
}

async fn plaintext() -> &'static str {
    HELLO
}

async fn db(context: State<Context>) -> Result<Json<World>, Unavailable> {
    context.database.world(random::row()).await.map(Json)
}

async fn queries(context: State<Context>, parameters: Parameters) -> Result<Json<Vec<World>>, Unavailable> {
    let ids = random::rows(count(&parameters, "queries"));
    context.database.worlds(&ids).await.map(Json)
}

/// Returns cached rows. Only this route uses the cache.
async fn cached_queries(context: State<Context>, parameters: Parameters) -> Result<Json<Vec<World>>, Unavailable> {
    let ids = random::rows(count(&parameters, "count"));
    let cached = ids.into_iter().map(|id| context.cache.try_get_with(id, context.database.world(id)));
    try_join_all(cached).await.map(Json).map_err(|_| Unavailable)
}

/// Reads random rows, gives each a new number, and writes them back.
async fn updates(context: State<Context>, parameters: Parameters) -> Result<Json<Vec<World>>, Unavailable> {
    let ids = random::distinct_rows(count(&parameters, "queries"));
    let mut worlds = context.database.worlds(&ids).await?;
    for world in &mut worlds {
        world.random_number = random::other_number(world.random_number);
    }
    context.database.update(&worlds).await?;
    Ok(Json(worlds))
}

struct Fortune<'a> {
    id: i32,
    message: &'a str,
}

#[derive(Template)]
#[template(path = "fortunes.html")]
struct FortunesPage<'a> {
    fortunes: Vec<Fortune<'a>>,
}

async fn fortunes(context: State<Context>) -> Result<HttpResponse, Error> {
    let rows = context.database.fortunes().await?;
    let mut fortunes: Vec<_> = rows.iter().map(|row| Fortune { id: row.get(0), message: row.get(1) }).collect();
    fortunes.push(Fortune { id: 0, message: "Additional fortune added at request time." });
    fortunes.sort_unstable_by_key(|fortune| fortune.message);
    let page = (FortunesPage { fortunes }).render().map_err(ErrorInternalServerError)?;
    Ok(HttpResponse::Ok().content_type("text/html; charset=utf-8").body(page))
}

async fn delay(parameters: Parameters) -> &'static str {
    let milliseconds = number(&parameters, "ms", 0, 1000, 0) as u64;
    tokio::time::sleep(Duration::from_millis(milliseconds)).await;
    HELLO
}

#[derive(Serialize)]
struct FanOut {
    calls: usize,
    sum: i64,
}

async fn fan_out(context: State<Context>, parameters: Parameters) -> Result<Json<FanOut>, Error> {
    let upstream = context.upstream.as_ref().ok_or_else(|| ErrorServiceUnavailable("UPSTREAM_URL is not set"))?;
    let calls = number(&parameters, "calls", 1, 100, 1) as usize;
    match upstream.sum(calls).await {
        Ok(sum) => Ok(Json(FanOut { calls, sum })),
        Err(error) => {
            complain(format_args!("upstream call failed: {error}"));
            Err(ErrorBadGateway("the upstream failed").into())
        }
    }
}
