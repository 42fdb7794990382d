package main

import (
	"embed"
	"errors"
	"html/template"
	"log"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
)

//go:embed fortunes.html
var templates embed.FS

const hello = "Hello, World!"

type handlers struct {
	database *database
	cache    *cachedWorlds
	upstream *upstream
}

func newRouter(h *handlers) http.Handler {
	gin.SetMode(gin.ReleaseMode)
	router := gin.New()
	router.HandleMethodNotAllowed = true
	router.SetHTMLTemplate(template.Must(template.ParseFS(templates, "fortunes.html")))
	router.Use(gin.Recovery(), serverHeader)
	for path, handler := range map[string]gin.HandlerFunc{
		"/json":           h.json,
		"/plaintext":      h.plaintext,
		"/db":             h.db,
		"/queries":        h.queries,
		"/cached-queries": h.cachedQueries,
		"/updates":        h.updates,
		"/fortunes":       h.fortunes,
		"/delay":          h.delay,
		"/fan-out":        h.fanOut,
	} {
		router.Match([]string{http.MethodGet, http.MethodHead}, path, handler)
	}
	return router
}

// serverHeader adds the Server header, which net/http does not set.
func serverHeader(c *gin.Context) {
	c.Header("Server", "Gin")
}

func (h *handlers) json(c *gin.Context) {
	c.JSON(http.StatusOK, gin.H{"message": hello})
}

func (h *handlers) plaintext(c *gin.Context) {
	c.String(http.StatusOK, hello)
}

func (h *handlers) db(c *gin.Context) {
	ctx, cancel := patient()
	defer cancel()
	world, err := h.database.world(ctx, randomRow())
	if err != nil {
		unavailable(c, err)
		return
	}
	c.JSON(http.StatusOK, world)
}

func (h *handlers) queries(c *gin.Context) {
	ctx, cancel := patient()
	defer cancel()
	worlds, err := h.database.worlds(ctx, randomRows(count(c, "queries")))
	if err != nil {
		unavailable(c, err)
		return
	}
	c.JSON(http.StatusOK, worlds)
}

func (h *handlers) cachedQueries(c *gin.Context) {
	ctx, cancel := patient()
	defer cancel()
	worlds, err := h.cache.worlds(ctx, randomRows(count(c, "count")))
	if err != nil {
		unavailable(c, err)
		return
	}
	c.JSON(http.StatusOK, worlds)
}

// updates reads random rows, gives each a new number and writes them back.
func (h *handlers) updates(c *gin.Context) {
	ctx, cancel := patient()
	defer cancel()
	worlds, err := h.database.worlds(ctx, distinctIDs(count(c, "queries")))
	if err == nil {
		for i := range worlds {
			worlds[i].RandomNumber = otherNumber(worlds[i].RandomNumber)
		}
		err = h.database.update(ctx, worlds)
	}
	if err != nil {
		unavailable(c, err)
		return
	}
	c.JSON(http.StatusOK, worlds)
}

func (h *handlers) fortunes(c *gin.Context) {
	ctx, cancel := patient()
	defer cancel()
	fortunes, err := h.database.fortunes(ctx)
	if err != nil {
		unavailable(c, err)
		return
	}
	fortunes = append(fortunes, fortune{Message: "Additional fortune added at request time."})
	slices.SortFunc(fortunes, func(a, b fortune) int { return strings.Compare(a.Message, b.Message) })
	c.HTML(http.StatusOK, "fortunes.html", fortunes)
}

func (h *handlers) delay(c *gin.Context) {
	time.Sleep(time.Duration(clamped(c.Query("ms"), 0, 1000, 0)) * time.Millisecond)
	c.String(http.StatusOK, hello)
}

func (h *handlers) fanOut(c *gin.Context) {
	calls := clamped(c.Query("calls"), 1, 100, 1)
	sum, err := h.upstream.sum(c.Request.Context(), calls)
	if errors.Is(err, errNoUpstream) {
		unavailable(c, err)
		return
	}
	if err != nil {
		log.Printf("upstream call failed: %v", err)
		c.AbortWithStatus(http.StatusBadGateway)
		return
	}
	c.JSON(http.StatusOK, gin.H{"calls": calls, "sum": sum})
}

// count returns the requested number of rows, clamped to 1..500.
func count(c *gin.Context, parameter string) int {
	return clamped(c.Query(parameter), 1, maxQueries, 1)
}

// unavailable responds with 503 and logs the error, at most once per second.
func unavailable(c *gin.Context, err error) {
	outages.report(err)
	c.AbortWithStatus(http.StatusServiceUnavailable)
}
