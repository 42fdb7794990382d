package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// maxUpstreamConnections limits the connections to the upstream. All implementations have the same limit.
const maxUpstreamConnections = 256

var errNoUpstream = errors.New("UPSTREAM_URL is not set")

// upstream is the service that /fan-out calls.
type upstream struct {
	url    string
	client *http.Client
}

func newUpstream(url string) *upstream {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxConnsPerHost = maxUpstreamConnections
	// By default, only two idle connections per host remain open, so most concurrent calls would have to reconnect.
	transport.MaxIdleConns, transport.MaxIdleConnsPerHost = 0, maxUpstreamConnections
	return &upstream{url: url, client: &http.Client{Transport: transport, Timeout: 10 * time.Second}}
}

// sum makes the calls concurrently and returns the sum of the results.
func (u *upstream) sum(ctx context.Context, calls int) (int64, error) {
	if u.url == "" {
		return 0, errNoUpstream
	}
	var sum atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	for range calls {
		group.Go(func() error {
			value, err := u.value(ctx)
			sum.Add(value)
			return err
		})
	}
	err := group.Wait()
	return sum.Load(), err
}

func (u *upstream) value(ctx context.Context) (int64, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.url, nil)
	if err != nil {
		return 0, err
	}
	response, err := u.client.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("the upstream responded with %s", response.Status)
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, 64))
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(strings.TrimSpace(string(body)), 10, 64)
}
