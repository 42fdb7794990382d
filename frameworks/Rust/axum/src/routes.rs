//! The axum application: routes, handlers and the Server header.

use std::path::Path;
use std::time::Duration;

use askama::Template;
use axum::body::Body;
use axum::extract::ws::{Message as Frame, WebSocketUpgrade};
use axum::extract::{FromRef, Query, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::{MethodRouter, any, get, get_service, post};
use axum::{Json, Router};
use futures_util::StreamExt;
use futures_util::future::try_join_all;
use moka::future::Cache;
use serde::Serialize;
use tower_http::compression::CompressionLayer;
use tower_http::services::ServeDir;
use tower_http::set_header::SetResponseHeaderLayer;

use crate::database::{Database, Unavailable, World, complain};
use crate::items::{DataSet, items};
use crate::random;
use crate::upstream::Upstream;

const HELLO: &str = "Hello, World!";
const MAX_QUERIES: i64 = 500;

#[derive(Clone)]
pub struct App {
    pub database: Database,
    pub cache: Cache<i32, World>,
    pub upstream: Option<Upstream>,
    pub data_set: DataSet,
}

impl FromRef<App> for DataSet {
    fn from_ref(app: &App) -> Self {
        app.data_set.clone()
    }
}

pub fn router(app: App, folder: Option<&Path>) -> Router {
    let server = SetResponseHeaderLayer::overriding(header::SERVER, HeaderValue::from_static("axum"));
    Router::new()
        .route("/json", get(json))
        .route("/plaintext", get(|| async { HELLO }))
        .route("/db", get(db))
        .route("/queries", get(queries))
        .route("/cached-queries", get(cached_queries))
        .route("/updates", get(updates))
        .route("/fortunes", get(fortunes))
        .route("/delay", get(delay))
        .route("/fan-out", get(fan_out))
        .route("/json/{count}", get(items).layer(CompressionLayer::new()))
        .route("/upload", post(upload))
        .route("/ws", any(echo))
        .nest_service("/static", static_files(folder))
        .with_state(app)
        .layer(server)
}

/// Echoes each message on a WebSocket connection. axum itself replies to pings and close frames.
async fn echo(upgrade: WebSocketUpgrade) -> Response {
    upgrade.on_upgrade(async |mut socket| {
        while let Some(Ok(message)) = socket.recv().await {
            let returned = matches!(message, Frame::Text(_) | Frame::Binary(_));
            if returned && socket.send(message).await.is_err() {
                return;
            }
        }
    })
}

/// Serves the files in a folder, or their precompressed variants if the client accepts them.
fn static_files(folder: Option<&Path>) -> MethodRouter {
    match folder {
        Some(folder) => get_service(ServeDir::new(folder).precompressed_br().precompressed_gzip()),
        None => get(|| async { StatusCode::SERVICE_UNAVAILABLE }),
    }
}

impl IntoResponse for Unavailable {
    fn into_response(self) -> Response {
        StatusCode::SERVICE_UNAVAILABLE.into_response()
    }
}

/// Query parameters as (name, value) pairs instead of a struct, because parameters may be repeated.
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

async fn db(State(app): State<App>) -> Result<Json<World>, Unavailable> {
    app.database.world(random::row()).await.map(Json)
}

async fn queries(State(app): State<App>, parameters: Parameters) -> Result<Json<Vec<World>>, Unavailable> {
    let ids = random::rows(count(&parameters, "queries"));
    app.database.worlds(&ids).await.map(Json)
}

/// Returns cached rows. Only this route uses the cache.
async fn cached_queries(State(app): State<App>, parameters: Parameters) -> Result<Json<Vec<World>>, Unavailable> {
    let ids = random::rows(count(&parameters, "count"));
    let worlds = try_join_all(ids.into_iter().map(|id| app.cache.try_get_with(id, app.database.world(id)))).await;
    worlds.map(Json).map_err(|_| Unavailable)
}

/// Reads random rows, gives each a new number, and writes them back.
async fn updates(State(app): State<App>, parameters: Parameters) -> Result<Json<Vec<World>>, Unavailable> {
    let ids = random::distinct_rows(count(&parameters, "queries"));
    let mut worlds = app.database.worlds(&ids).await?;
    for world in &mut worlds {
        world.random_number = random::other_number(world.random_number);
    }
    app.database.update(&worlds).await?;
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

async fn fortunes(State(app): State<App>) -> Result<Response, Unavailable> {
    let rows = app.database.fortunes().await?;
    let mut fortunes: Vec<_> = rows.iter().map(|row| Fortune { id: row.get(0), message: row.get(1) }).collect();
    fortunes.push(Fortune { id: 0, message: "Additional fortune added at request time." });
    fortunes.sort_unstable_by_key(|fortune| fortune.message);
    Ok(match (FortunesPage { fortunes }).render() {
        Ok(page) => Html(page).into_response(),
        Err(error) => {
            eprintln!("cannot render the fortunes page: {error}");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    })
}

async fn delay(parameters: Parameters) -> &'static str {
    let milliseconds = number(&parameters, "ms", 0, 1000, 0) as u64;
    tokio::time::sleep(Duration::from_millis(milliseconds)).await;
    HELLO
}

/// Discards the request body, and responds with its length in bytes.
async fn upload(body: Body) -> Result<String, StatusCode> {
    let mut chunks = body.into_data_stream();
    let mut bytes = 0;
    while let Some(chunk) = chunks.next().await {
        bytes += chunk.map_err(|_| StatusCode::BAD_REQUEST)?.len();
    }
    Ok(bytes.to_string())
}

#[derive(Serialize)]
struct FanOut {
    calls: usize,
    sum: i64,
}

async fn fan_out(State(app): State<App>, parameters: Parameters) -> Result<Json<FanOut>, StatusCode> {
    let upstream = app.upstream.ok_or(StatusCode::SERVICE_UNAVAILABLE)?;
    let calls = number(&parameters, "calls", 1, 100, 1) as usize;
    match upstream.sum(calls).await {
        Ok(sum) => Ok(Json(FanOut { calls, sum })),
        Err(error) => {
            complain(format_args!("upstream call failed: {error}"));
            Err(StatusCode::BAD_GATEWAY)
        }
    }
}
