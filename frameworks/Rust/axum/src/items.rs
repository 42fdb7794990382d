//! The `/json/{count}` endpoint, which returns items of the data set with totals.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::sync::Arc;

use axum::Json;
use axum::extract;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};

#[derive(Deserialize, Serialize)]
struct Rating {
    score: i64,
    count: i64,
}

#[derive(Deserialize)]
pub struct Item {
    id: i64,
    name: String,
    category: String,
    price: i64,
    quantity: i64,
    active: bool,
    tags: Vec<String>,
    rating: Rating,
}

/// The items of the data set, or `None` if no file is configured.
pub type DataSet = Option<Arc<[Item]>>;

#[derive(Serialize)]
struct ItemWithTotal<'a> {
    id: i64,
    name: &'a str,
    category: &'a str,
    price: i64,
    quantity: i64,
    active: bool,
    tags: &'a [String],
    rating: &'a Rating,
    total: i64,
}

#[derive(Serialize)]
struct Items<'a> {
    items: Vec<ItemWithTotal<'a>>,
    count: usize,
}

#[derive(Deserialize)]
pub struct Multiplier {
    m: i64,
}

/// Reads the data set, a JSON array of items. Error messages contain the file's path.
pub fn read(path: &Path) -> Result<Arc<[Item]>, String> {
    let file = File::open(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let items: Result<Vec<Item>, _> = serde_json::from_reader(BufReader::new(file));
    items.map(Into::into).map_err(|error| format!("{}: {error}", path.display()))
}

/// Returns the first `count` items, each with `total` = price x quantity x m.
pub async fn items(
    State(data_set): State<DataSet>,
    extract::Path(count): extract::Path<usize>,
    Query(Multiplier { m }): Query<Multiplier>,
) -> Response {
    let Some(data) = data_set else { return StatusCode::SERVICE_UNAVAILABLE.into_response() };
    let items: Vec<_> = data
        .iter()
        .take(count)
        .map(|item| ItemWithTotal {
            id: item.id,
            name: &item.name,
            category: &item.category,
            price: item.price,
            quantity: item.quantity,
            active: item.active,
            tags: &item.tags,
            rating: &item.rating,
            total: item.price * item.quantity * m,
        })
        .collect();
    let count = items.len();
    Json(Items { items, count }).into_response()
}
