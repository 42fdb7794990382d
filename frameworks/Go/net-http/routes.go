package main

import (
	"net/http"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
)

// paths returns the GET handlers by path, for both routers.
func (h *handlers) paths() map[string]http.HandlerFunc {
	return map[string]http.HandlerFunc{
		"/json":           h.json,
		"/plaintext":      h.plaintext,
		"/db":             h.db,
		"/queries":        h.queries,
		"/updates":        h.updates,
		"/fortunes":       h.fortunes,
		"/cached-queries": h.cachedQueries,
		"/delay":          h.delay,
		"/fan-out":        h.fanOut,
	}
}

// standardRoutes uses net/http's router. GET patterns also serve HEAD; other methods get 405.
func standardRoutes(h *handlers) http.Handler {
	mux := http.NewServeMux()
	for path, handler := range h.paths() {
		mux.HandleFunc("GET "+path, handler)
	}
	mux.Handle("GET /json/{count}", itemsHandler(h.items))
	mux.HandleFunc("POST /upload", upload)
	mux.HandleFunc("GET /ws", echo)
	if h.folder != "" {
		mux.Handle("GET /static/", staticFiles(h.folder))
	}
	return mux
}

func chiRoutes(h *handlers) http.Handler {
	router := chi.NewRouter()
	router.Use(middleware.GetHead)
	for path, handler := range h.paths() {
		router.Get(path, handler)
	}
	return router
}

// named adds the Server header, which net/http does not set.
func named(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Server", "Go")
		next.ServeHTTP(w, r)
	})
}
