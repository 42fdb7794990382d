package main

import (
	"embed"
	"errors"
	"log"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/gofiber/fiber/v3"
	"github.com/gofiber/template/html/v2"
)

//go:embed fortunes.html
var templates embed.FS

const hello = "Hello, World!"

type handlers struct {
	database *database
	cache    *cachedWorlds
	upstream *upstream
}

func newApp(h *handlers) *fiber.App {
	app := fiber.New(fiber.Config{
		ServerHeader: "Fiber",
		Views:        html.NewFileSystem(http.FS(templates), ".html"),
		ErrorHandler: respond,
	})
	app.Use(closeOnRequest)
	app.Get("/json", h.json)
	app.Get("/plaintext", h.plaintext)
	app.Get("/db", h.db)
	app.Get("/queries", h.queries)
	app.Get("/cached-queries", h.cachedQueries)
	app.Get("/updates", h.updates)
	app.Get("/fortunes", h.fortunes)
	app.Get("/delay", h.delay)
	app.Get("/fan-out", h.fanOut)
	return app
}

// closeOnRequest honours "Connection: close" in any letter case. fasthttp recognises only lower case.
func closeOnRequest(c fiber.Ctx) error {
	if strings.EqualFold(c.Get(fiber.HeaderConnection), "close") {
		c.RequestCtx().SetConnectionClose()
	}
	return c.Next()
}

// respond is the error handler. Errors from Fiber keep their status. Other errors, for example database failures,
// become 503.
func respond(c fiber.Ctx, err error) error {
	status := fiber.StatusServiceUnavailable
	var known *fiber.Error
	if errors.As(err, &known) {
		status = known.Code
	} else {
		outages.report(err)
	}
	return c.SendStatus(status)
}

func (h *handlers) json(c fiber.Ctx) error {
	return c.JSON(fiber.Map{"message": hello})
}

func (h *handlers) plaintext(c fiber.Ctx) error {
	return c.SendString(hello)
}

func (h *handlers) db(c fiber.Ctx) error {
	ctx, cancel := patient()
	defer cancel()
	world, err := h.database.world(ctx, randomRow())
	if err != nil {
		return err
	}
	return c.JSON(world)
}

func (h *handlers) queries(c fiber.Ctx) error {
	ctx, cancel := patient()
	defer cancel()
	worlds, err := h.database.worlds(ctx, randomRows(count(c, "queries")))
	if err != nil {
		return err
	}
	return c.JSON(worlds)
}

func (h *handlers) cachedQueries(c fiber.Ctx) error {
	ctx, cancel := patient()
	defer cancel()
	worlds, err := h.cache.worlds(ctx, randomRows(count(c, "count")))
	if err != nil {
		return err
	}
	return c.JSON(worlds)
}

// updates reads random rows, gives each a new number and writes them back.
func (h *handlers) updates(c fiber.Ctx) error {
	ctx, cancel := patient()
	defer cancel()
	worlds, err := h.database.worlds(ctx, distinctIDs(count(c, "queries")))
	if err != nil {
		return err
	}
	for i := range worlds {
		worlds[i].RandomNumber = otherNumber(worlds[i].RandomNumber)
	}
	if err := h.database.update(ctx, worlds); err != nil {
		return err
	}
	return c.JSON(worlds)
}

func (h *handlers) fortunes(c fiber.Ctx) error {
	ctx, cancel := patient()
	defer cancel()
	fortunes, err := h.database.fortunes(ctx)
	if err != nil {
		return err
	}
	fortunes = append(fortunes, fortune{Message: "Additional fortune added at request time."})
	slices.SortFunc(fortunes, func(a, b fortune) int { return strings.Compare(a.Message, b.Message) })
	return c.Render("fortunes", fortunes)
}

func (h *handlers) delay(c fiber.Ctx) error {
	time.Sleep(time.Duration(clamped(c.Query("ms"), 0, 1000, 0)) * time.Millisecond)
	return c.SendString(hello)
}

func (h *handlers) fanOut(c fiber.Ctx) error {
	calls := clamped(c.Query("calls"), 1, 100, 1)
	sum, err := h.upstream.sum(c.Context(), calls)
	if errors.Is(err, errNoUpstream) {
		return fiber.ErrServiceUnavailable
	}
	if err != nil {
		log.Printf("upstream call failed: %v", err)
		return fiber.ErrBadGateway
	}
	return c.JSON(fiber.Map{"calls": calls, "sum": sum})
}

// count returns the requested number of rows, clamped to 1..500.
func count(c fiber.Ctx, parameter string) int {
	return clamped(c.Query(parameter), 1, maxQueries, 1)
}
