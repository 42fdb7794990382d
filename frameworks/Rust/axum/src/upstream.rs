//! A client for the upstream of `/fan-out`.

use futures_util::future::try_join_all;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

/// All implementations open at most 256 connections to the upstream.
pub const CONNECTIONS: usize = 256;

#[derive(Clone)]
pub struct Upstream {
    url: reqwest::Url,
    client: reqwest::Client,
    /// reqwest does not limit the number of connections, so each call that occupies one holds a permit.
    permits: Arc<Semaphore>,
}

impl Upstream {
    pub fn new(url: &str, connections: usize) -> Result<Self, Box<dyn Error>> {
        let client = reqwest::Client::builder()
            .timeout(Duration::from_secs(10))
            .pool_max_idle_per_host(connections)
            .no_proxy()
            .build()?;
        Ok(Self { url: url.parse()?, client, permits: Arc::new(Semaphore::new(connections)) })
    }

    /// Calls the upstream concurrently and returns the sum of the results.
    pub async fn sum(&self, calls: usize) -> Result<i64, Box<dyn Error + Send + Sync>> {
        Ok(try_join_all((0..calls).map(|_| self.value())).await?.iter().sum())
    }

    async fn value(&self) -> Result<i64, Box<dyn Error + Send + Sync>> {
        let _permit = self.permits.acquire().await?;
        let response = self.client.get(self.url.clone()).send().await?.error_for_status()?;
        Ok(response.text().await?.trim().parse()?)
    }
}
