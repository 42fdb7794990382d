//! Settings from environment variables.

use std::env;
use std::path::PathBuf;
use std::time::Duration;

pub struct Settings {
    pub host: String,
    pub port: u16,
    pub database: tokio_postgres::Config,
    /// URL that `/fan-out` calls.
    pub upstream: Option<String>,
    /// Data set file for `/json/{count}`.
    pub dataset: Option<PathBuf>,
    /// Folder served under `/static/`.
    pub folder: Option<PathBuf>,
    pub tls: Option<Tls>,
    /// Port for HTTP/2 without TLS.
    pub cleartext_port: Option<u16>,
}

/// The HTTPS port, and the PEM files with the certificate and the private key.
pub struct Tls {
    pub port: u16,
    pub certificate: PathBuf,
    pub key: PathBuf,
}

impl Settings {
    /// Reads the settings. Error messages contain the invalid variable's name.
    pub fn from_environment() -> Result<Self, String> {
        let mut database = tokio_postgres::Config::new();
        database
            .host(variable("DBHOST", "tfb-database"))
            .port(port("DBPORT", "5432")?)
            .dbname(variable("DBNAME", "hello_world"))
            .user(variable("DBUSER", "benchmarkdbuser"))
            .password(variable("DBPASS", "benchmarkdbpass"))
            .connect_timeout(Duration::from_secs(3));
        Ok(Self {
            host: variable("HOST", "0.0.0.0"),
            port: port("PORT", "8080")?,
            database,
            upstream: optional("UPSTREAM_URL"),
            dataset: optional("DATASET").map(PathBuf::from),
            folder: optional("STATIC_DIR").map(PathBuf::from),
            cleartext_port: optional("H2C_PORT").map(|_| port("H2C_PORT", "")).transpose()?,
            tls: match optional("HTTPS_PORT") {
                None => None,
                Some(_) => Some(Tls {
                    port: port("HTTPS_PORT", "")?,
                    certificate: variable("TLS_CERT", "certificate.pem").into(),
                    key: variable("TLS_KEY", "key.pem").into(),
                }),
            },
        })
    }
}

fn optional(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

fn variable(name: &str, fallback: &str) -> String {
    optional(name).unwrap_or_else(|| fallback.into())
}

fn port(name: &str, fallback: &str) -> Result<u16, String> {
    let text = variable(name, fallback);
    text.parse().map_err(|_| format!("{name}: {text:?} is not a port; set a number from 1 to 65535"))
}
