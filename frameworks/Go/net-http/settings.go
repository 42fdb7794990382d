package main

import (
	"net"
	"net/url"
	"os"
)

// settings is the server's configuration, read from environment variables.
type settings struct {
	address  string // address to listen on
	database string // PostgreSQL connection URL
	upstream string // URL that /fan-out calls; empty if not set
	dataset  string // data set file for /json/{count}; empty if not set
	folder   string // folder served under /static/; empty if not set
	https    string // address for HTTPS; empty if not set
	cert     string // PEM file with the HTTPS certificate
	key      string // PEM file with the certificate's private key
}

func settingsFromEnvironment() settings {
	database := url.URL{
		Scheme:   "postgres",
		User:     url.UserPassword(env("DBUSER", "benchmarkdbuser"), env("DBPASS", "benchmarkdbpass")),
		Host:     net.JoinHostPort(env("DBHOST", "tfb-database"), env("DBPORT", "5432")),
		Path:     "/" + env("DBNAME", "hello_world"),
		RawQuery: "sslmode=disable&connect_timeout=3",
	}
	https := os.Getenv("HTTPS_PORT")
	if https != "" {
		https = net.JoinHostPort(env("HOST", ""), https)
	}
	return settings{
		address:  net.JoinHostPort(env("HOST", ""), env("PORT", "8080")),
		database: database.String(),
		upstream: os.Getenv("UPSTREAM_URL"),
		dataset:  os.Getenv("DATASET"),
		folder:   os.Getenv("STATIC_DIR"),
		https:    https,
		cert:     os.Getenv("TLS_CERT"),
		key:      os.Getenv("TLS_KEY"),
	}
}

func env(name, otherwise string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return otherwise
}
