//! Settings from environment variables.

use std::env;

#[derive(Clone)]
pub struct Settings {
    pub host: String,
    pub port: u16,
    pub database: Database,
    /// URL that `/fan-out` calls.
    pub upstream: Option<String>,
}

#[derive(Clone)]
pub struct Database {
    pub host: String,
    pub port: u16,
    pub name: String,
    pub user: String,
    pub password: String,
}

impl Settings {
    /// Reads the settings. Error messages contain the invalid variable's name.
    pub fn from_environment() -> Result<Self, String> {
        Ok(Self {
            host: variable("HOST", "0.0.0.0"),
            port: port("PORT", "8080")?,
            database: Database {
                host: variable("DBHOST", "tfb-database"),
                port: port("DBPORT", "5432")?,
                name: variable("DBNAME", "hello_world"),
                user: variable("DBUSER", "benchmarkdbuser"),
                password: variable("DBPASS", "benchmarkdbpass"),
            },
            upstream: env::var("UPSTREAM_URL").ok().filter(|url| !url.is_empty()),
        })
    }
}

fn variable(name: &str, fallback: &str) -> String {
    env::var(name).ok().filter(|value| !value.is_empty()).unwrap_or_else(|| fallback.into())
}

fn port(name: &str, fallback: &str) -> Result<u16, String> {
    let text = variable(name, fallback);
    text.parse().map_err(|_| format!("{name}: {text:?} is not a port; set a number from 1 to 65535"))
}
