package main

import (
	"net"
	"net/url"
	"os"
)

// settings is the server's configuration, read from environment variables.
type settings struct {
	address   string // address to listen on
	database  string // PostgreSQL connection URL
	upstream  string // URL that /fan-out calls; empty if not set
	dataset   string // data set file for /json/{count}; empty if not set
	folder    string // folder served under /static/; empty if not set
	https     string // address for HTTPS; empty if not set
	cert      string // PEM file with the HTTPS certificate
	key       string // PEM file with the certificate's private key
	cleartext string // address for HTTP/2 without TLS; empty if not set
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
		address:   net.JoinHostPort(env("HOST", ""), env("PORT", "8080")),
		database:  database.String(),
		upstream:  os.Getenv("UPSTREAM_URL"),
		dataset:   os.Getenv("DATASET"),
		folder:    os.Getenv("STATIC_DIR"),
		https:     optionalAddress("HTTPS_PORT"),
		cert:      os.Getenv("TLS_CERT"),
		key:       os.Getenv("TLS_KEY"),
		cleartext: optionalAddress("H2C_PORT"),
	}
}

// optionalAddress returns the address whose port is in an environment variable, or an empty string if the variable is
// not set.
func optionalAddress(variable string) string {
	if port := os.Getenv(variable); port != "" {
		return net.JoinHostPort(env("HOST", ""), port)
	}
	return ""
}

func env(name, fallback string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return fallback
}
