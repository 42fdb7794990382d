// Command gin implements the benchmark's test types with Gin.
package main

import (
	"context"
	"errors"
	"log"
	"net/http"
	"os/signal"
	"syscall"
	"time"
)

// grace is how long a stopping server waits for requests in progress.
const grace = 3 * time.Second

func main() {
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
	handlers := &handlers{database: database, cache: cache, upstream: newUpstream(settings.upstream)}

	server := &http.Server{Addr: settings.address, Handler: newRouter(handlers), ReadHeaderTimeout: 10 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- server.ListenAndServe() }()
	log.Printf("listening on %s", settings.address)

	select {
	case err := <-failed:
		log.Fatal(err)
	case <-ctx.Done():
	}
	ending, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	if err := server.Shutdown(ending); errors.Is(err, context.DeadlineExceeded) {
		_ = server.Close()
	}
}
