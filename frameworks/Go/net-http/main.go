// Command net-http implements the benchmark's test types with net/http and a choice of router: the standard library's
// or chi.
package main

import (
	"context"
	"errors"
	"flag"
	"log"
	"net/http"
	"os/signal"
	"syscall"
	"time"
)

// grace is how long a stopping server waits for requests in progress.
const grace = 3 * time.Second

func main() {
	router := flag.String("router", "std", "router to use: std or chi")
	flag.Parse()
	settings := settingsFromEnvironment()

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()

	database, err := newDatabase(settings.database)
	if err != nil {
		log.Fatalf("invalid database settings: %v", err)
	}
	defer database.close()
	cache, err := newCachedWorlds(database)
	if err != nil {
		log.Fatalf("cannot create the cache: %v", err)
	}
	items, err := readItems(settings.dataset)
	if err != nil {
		log.Fatalf("cannot read the data set: %v", err)
	}
	handlers := &handlers{
		database: database, cache: cache, upstream: newUpstream(settings.upstream), items: items, folder: settings.folder,
	}

	var routes http.Handler
	switch *router {
	case "std":
		routes = standardRoutes(handlers)
	case "chi":
		routes = chiRoutes(handlers)
	default:
		log.Fatalf("-router: unknown value %q; use std or chi", *router)
	}

	servers := []*http.Server{newServer(settings.address, routes)}
	failed := make(chan error, 3)
	go func() { failed <- servers[0].ListenAndServe() }()
	if settings.https != "" {
		https := newServer(settings.https, routes)
		servers = append(servers, https)
		go func() { failed <- https.ListenAndServeTLS(settings.cert, settings.key) }()
	}
	if settings.cleartext != "" {
		cleartext := newServer(settings.cleartext, routes)
		cleartext.Protocols = new(http.Protocols)
		cleartext.Protocols.SetUnencryptedHTTP2(true)
		servers = append(servers, cleartext)
		go func() { failed <- cleartext.ListenAndServe() }()
	}
	log.Printf("listening on %s, router %s", settings.address, *router)

	select {
	case err := <-failed:
		log.Fatal(err)
	case <-ctx.Done():
	}
	ending, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	for _, server := range servers {
		if err := server.Shutdown(ending); errors.Is(err, context.DeadlineExceeded) {
			_ = server.Close()
		}
	}
}

func newServer(address string, routes http.Handler) *http.Server {
	return &http.Server{Addr: address, Handler: named(routes), ReadHeaderTimeout: 10 * time.Second}
}
