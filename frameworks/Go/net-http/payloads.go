package main

import (
	"encoding/json"
	"io"
	"math"
	"net/http"
	"os"
	"strconv"

	"github.com/klauspost/compress/gzhttp"
)

type rating struct {
	Score int `json:"score"`
	Count int `json:"count"`
}

// item is an entry in the data set for /json/{count}.
type item struct {
	ID       int      `json:"id"`
	Name     string   `json:"name"`
	Category string   `json:"category"`
	Price    int      `json:"price"`
	Quantity int      `json:"quantity"`
	Active   bool     `json:"active"`
	Tags     []string `json:"tags"`
	Rating   rating   `json:"rating"`
}

type itemWithTotal struct {
	item
	Total int `json:"total"`
}

type itemsPage struct {
	Items []itemWithTotal `json:"items"`
	Count int             `json:"count"`
}

// readItems reads the data set, a JSON array of items. It returns nil if file is an empty string.
func readItems(file string) ([]item, error) {
	if file == "" {
		return nil, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var items []item
	return items, json.Unmarshal(text, &items)
}

// itemsHandler responds with the first count items, each with total = price x quantity x m. The response is compressed
// if the client accepts gzip.
func itemsHandler(items []item) http.Handler {
	return gzhttp.GzipHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if items == nil {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		count := clamped(r.PathValue("count"), 0, len(items), 0)
		m := clamped(r.URL.Query().Get("m"), 1, math.MaxInt32, 1)
		page := itemsPage{Items: make([]itemWithTotal, count), Count: count}
		for i, each := range items[:count] {
			page.Items[i] = itemWithTotal{item: each, Total: each.Price * each.Quantity * m}
		}
		writeJSON(w, page)
	}))
}

// upload discards the request body and responds with its length in bytes.
func upload(w http.ResponseWriter, r *http.Request) {
	bytes, err := io.Copy(io.Discard, r.Body)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "text/plain")
	_, _ = io.WriteString(w, strconv.FormatInt(bytes, 10))
}

// staticFiles serves the files in folder under /static/.
func staticFiles(folder string) http.Handler {
	return http.StripPrefix("/static/", http.FileServer(http.Dir(folder)))
}
