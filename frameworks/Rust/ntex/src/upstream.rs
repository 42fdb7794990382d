//! A client for the upstream of `/fan-out`.

use futures_util::future::try_join_all;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

/// Maximum number of connections to the upstream, as in all implementations. Each worker gets an equal share.
const CONNECTIONS: usize = 256;

/// A worker's connections to the upstream.
#[derive(Clone)]
pub struct Upstream {
    url: reqwest::Url,
    client: reqwest::Client,
    /// Limits the number of concurrent calls, because reqwest does not limit the number of connections.
    permits: Arc<Semaphore>,
}

impl Upstream {
    pub fn new(url: reqwest::Url, workers: usize) -> Result<Self, reqwest::Error> {
        let connections = (CONNECTIONS / workers).max(1);
        let client = reqwest::Client::builder()
            .timeout(Duration::from_secs(10))
            .pool_max_idle_per_host(connections)
            .no_proxy()
            .build()?;
        Ok(Self { url, client, permits: Arc::new(Semaphore::new(connections)) })
    }

    /// Makes the calls concurrently and returns the sum of the results.
    pub async fn sum(&self, calls: usize) -> Result<i64, Box<dyn Error + Send + Sync>> {
        Ok(try_join_all((0..calls).map(|_| self.value())).await?.iter().sum())
    }

    async fn value(&self) -> Result<i64, Box<dyn Error + Send + Sync>> {
        let _permit = self.permits.acquire().await?;
        let response = self.client.get(self.url.clone()).send().await?.error_for_status()?;
        let value = response.text().await?.trim().parse()?;
        // Let the connection's task return the connection to the pool before the next call requests one.
        tokio::task::yield_now().await;
        Ok(value)
    }
}
