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
}

func settingsFromEnvironment() settings {
	database := url.URL{
		Scheme:   "postgres",
		User:     url.UserPassword(env("DBUSER", "benchmarkdbuser"), env("DBPASS", "benchmarkdbpass")),
		Host:     net.JoinHostPort(env("DBHOST", "tfb-database"), env("DBPORT", "5432")),
		Path:     "/" + env("DBNAME", "hello_world"),
		RawQuery: "sslmode=disable&connect_timeout=3",
	}
	return settings{
		address:  net.JoinHostPort(env("HOST", ""), env("PORT", "8080")),
		database: database.String(),
		upstream: os.Getenv("UPSTREAM_URL"),
	}
}

func env(name, fallback string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return fallback
}
