//! A client for the upstream of `/fan-out`.

use futures_util::future::try_join_all;
use std::error::Error;
use std::time::Duration;

#[derive(Clone)]
pub struct Upstream {
    url: reqwest::Url,
    client: reqwest::Client,
}

impl Upstream {
    pub fn new(url: &str) -> Result<Self, Box<dyn Error>> {
        let client = reqwest::Client::builder().timeout(Duration::from_secs(10)).no_proxy().build()?;
        Ok(Self { url: url.parse()?, client })
    }

    /// Calls the upstream concurrently and returns the sum of the results.
    pub async fn sum(&self, calls: usize) -> Result<i64, Box<dyn Error + Send + Sync>> {
        Ok(try_join_all((0..calls).map(|_| self.value())).await?.iter().sum())
    }

    async fn value(&self) -> Result<i64, Box<dyn Error + Send + Sync>> {
        let response = self.client.get(self.url.clone()).send().await?.error_for_status()?;
        Ok(response.text().await?.trim().parse()?)
    }
}
