package main

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"html/template"
	"log"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

//go:embed fortunes.html
var templates embed.FS

var fortunesPage = template.Must(template.ParseFS(templates, "fortunes.html"))

type handlers struct {
	database *database
	cache    *cachedWorlds
	upstream *upstream
	items    []item // data set for /json/{count}; nil if not configured
	folder   string // folder served under /static/; empty if not set
}

type message struct {
	Message string `json:"message"`
}

func (h *handlers) json(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, message{Message: "Hello, World!"})
}

func (h *handlers) plaintext(w http.ResponseWriter, _ *http.Request) {
	writeHello(w)
}

func (h *handlers) db(w http.ResponseWriter, _ *http.Request) {
	ctx, cancel := patient()
	defer cancel()
	world, err := h.database.world(ctx, randomRow())
	if err != nil {
		unavailable(w, err)
		return
	}
	writeJSON(w, world)
}

func (h *handlers) queries(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := patient()
	defer cancel()
	worlds, err := h.database.worlds(ctx, randomRows(count(r, "queries")))
	if err != nil {
		unavailable(w, err)
		return
	}
	writeJSON(w, worlds)
}

func (h *handlers) cachedQueries(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := patient()
	defer cancel()
	worlds, err := h.cache.worlds(ctx, randomRows(count(r, "count")))
	if err != nil {
		unavailable(w, err)
		return
	}
	writeJSON(w, worlds)
}

// updates reads random rows, gives each a new number and writes them back.
func (h *handlers) updates(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := patient()
	defer cancel()
	worlds, err := h.database.worlds(ctx, distinctIDs(count(r, "queries")))
	if err == nil {
		for i := range worlds {
			worlds[i].RandomNumber = otherNumber(worlds[i].RandomNumber)
		}
		err = h.database.update(ctx, worlds)
	}
	if err != nil {
		unavailable(w, err)
		return
	}
	writeJSON(w, worlds)
}

func (h *handlers) fortunes(w http.ResponseWriter, _ *http.Request) {
	ctx, cancel := patient()
	defer cancel()
	fortunes, err := h.database.fortunes(ctx)
	if err != nil {
		unavailable(w, err)
		return
	}
	fortunes = append(fortunes, fortune{Message: "Additional fortune added at request time."})
	slices.SortFunc(fortunes, func(a, b fortune) int { return strings.Compare(a.Message, b.Message) })
	var page bytes.Buffer
	if err := fortunesPage.Execute(&page, fortunes); err != nil {
		log.Printf("cannot render the fortunes page: %v", err)
		http.Error(w, http.StatusText(http.StatusInternalServerError), http.StatusInternalServerError)
		return
	}
	write(w, "text/html; charset=utf-8", page.Bytes())
}

func (h *handlers) delay(w http.ResponseWriter, r *http.Request) {
	time.Sleep(time.Duration(clamped(r.URL.Query().Get("ms"), 0, 1000, 0)) * time.Millisecond)
	writeHello(w)
}

func (h *handlers) fanOut(w http.ResponseWriter, r *http.Request) {
	calls := clamped(r.URL.Query().Get("calls"), 1, 100, 1)
	sum, err := h.upstream.sum(r.Context(), calls)
	if errors.Is(err, errNoUpstream) {
		unavailable(w, err)
		return
	}
	if err != nil {
		log.Printf("upstream call failed: %v", err)
		http.Error(w, http.StatusText(http.StatusBadGateway), http.StatusBadGateway)
		return
	}
	writeJSON(w, struct {
		Calls int   `json:"calls"`
		Sum   int64 `json:"sum"`
	}{calls, sum})
}

// count returns the requested number of rows, clamped to 1..500.
func count(r *http.Request, parameter string) int {
	return clamped(r.URL.Query().Get(parameter), 1, maxQueries, 1)
}

func writeHello(w http.ResponseWriter) {
	write(w, "text/plain", []byte("Hello, World!"))
}

func writeJSON(w http.ResponseWriter, value any) {
	body, err := json.Marshal(value)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	write(w, "application/json", body)
}

func write(w http.ResponseWriter, contentType string, body []byte) {
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body) // fails only if the client has disconnected
}

// unavailable responds with 503 and logs the error, at most once per second.
func unavailable(w http.ResponseWriter, err error) {
	outages.report(err)
	http.Error(w, http.StatusText(http.StatusServiceUnavailable), http.StatusServiceUnavailable)
}
