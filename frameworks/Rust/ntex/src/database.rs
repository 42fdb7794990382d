//! A pipelined PostgreSQL connection. Statements do not wait for the results of earlier statements, and a Sync follows
//! each statement. After losing the connection, the server tries to reconnect every second.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, RwLock};
use std::time::{Duration, UNIX_EPOCH};

use futures_util::future::try_join_all;
use serde::Serialize;
use tokio_postgres::{Client, Config, NoTls, Row, Statement};

const SELECT_WORLD: &str = "SELECT id, randomnumber FROM world WHERE id = $1";
const SELECT_FORTUNES: &str = "SELECT id, message FROM fortune";
const UPDATE_WORLDS: &str = "UPDATE world SET randomnumber = new.randomnumber \
     FROM unnest($1::int[], $2::int[]) AS new (id, randomnumber) WHERE world.id = new.id";

const RETRY: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, Serialize)]
pub struct World {
    pub id: i32,
    #[serde(rename = "randomNumber")]
    pub random_number: i32,
}

/// The error if there is no connection, or if a statement failed.
#[derive(Debug, Clone)]
pub struct Unavailable;

/// Logs at most one failure per second.
pub fn complain(message: impl std::fmt::Display) {
    static LAST: AtomicU64 = AtomicU64::new(0);
    let now = UNIX_EPOCH.elapsed().map_or(0, |time| time.as_secs());
    if LAST.swap(now, Ordering::Relaxed) != now {
        eprintln!("{message}");
    }
}

impl From<tokio_postgres::Error> for Unavailable {
    fn from(error: tokio_postgres::Error) -> Self {
        if !error.is_closed() {
            complain(format_args!("a statement failed: {error}"));
        }
        Self
    }
}

struct Prepared {
    client: Client,
    world: Statement,
    fortunes: Statement,
    update: Statement,
}

#[derive(Clone)]
pub struct Database(Arc<RwLock<Option<Arc<Prepared>>>>);

impl Database {
    /// Returns immediately, and connects in the background on the current runtime.
    pub fn connecting(config: Config) -> Self {
        let database = Self(Arc::default());
        tokio::spawn(database.clone().stay_connected(config));
        database
    }

    pub async fn world(&self, id: i32) -> Result<World, Unavailable> {
        self.prepared()?.world(id).await
    }

    /// Reads each row with a separate SELECT.
    pub async fn worlds(&self, ids: &[i32]) -> Result<Vec<World>, Unavailable> {
        let prepared = self.prepared()?;
        try_join_all(ids.iter().map(|&id| prepared.world(id))).await
    }

    /// Writes all rows with a single statement, which locks them in the given order.
    pub async fn update(&self, worlds: &[World]) -> Result<(), Unavailable> {
        let prepared = self.prepared()?;
        let (ids, numbers): (Vec<i32>, Vec<i32>) = worlds.iter().map(|w| (w.id, w.random_number)).unzip();
        prepared.client.execute(&prepared.update, &[&ids, &numbers]).await?;
        Ok(())
    }

    /// Returns (id, message) rows.
    pub async fn fortunes(&self) -> Result<Vec<Row>, Unavailable> {
        let prepared = self.prepared()?;
        Ok(prepared.client.query(&prepared.fortunes, &[]).await?)
    }

    fn prepared(&self) -> Result<Arc<Prepared>, Unavailable> {
        self.0.read().expect("no thread panics while holding this lock").clone().ok_or(Unavailable)
    }

    fn set(&self, prepared: Option<Arc<Prepared>>) {
        *self.0.write().expect("no thread panics while holding this lock") = prepared;
    }

    async fn stay_connected(self, config: Config) {
        loop {
            if let Err(error) = self.connection(&config).await {
                eprintln!("no connection to PostgreSQL: {error}");
            }
            self.set(None);
            tokio::time::sleep(RETRY).await;
        }
    }

    /// Connects, and returns when the connection is closed.
    async fn connection(&self, config: &Config) -> Result<(), tokio_postgres::Error> {
        let (client, connection) = config.connect(NoTls).await?;
        let driver = tokio::spawn(connection);
        let (world, fortunes, update) = tokio::try_join!(
            client.prepare(SELECT_WORLD),
            client.prepare(SELECT_FORTUNES),
            client.prepare(UPDATE_WORLDS),
        )?;
        self.set(Some(Arc::new(Prepared { client, world, fortunes, update })));
        driver.await.unwrap_or(Ok(()))
    }
}

impl Prepared {
    async fn world(&self, id: i32) -> Result<World, Unavailable> {
        let row = self.client.query_one(&self.world, &[&id]).await?;
        Ok(World { id: row.get(0), random_number: row.get(1) })
    }
}
