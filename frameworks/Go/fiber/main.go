// Command fiber implements the benchmark's test types with Fiber.
package main

import (
	"context"
	"log"
	"os/signal"
	"syscall"
	"time"

	"github.com/gofiber/fiber/v3"
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
	app := newApp(&handlers{database: database, cache: cache, upstream: newUpstream(settings.upstream)})
	log.Printf("listening on %s", settings.address)
	if err := app.Listen(settings.address, fiber.ListenConfig{
		DisableStartupMessage: true,
		GracefulContext:       ctx,
		ShutdownTimeout:       grace,
	}); err != nil {
		log.Fatal(err)
	}
}
