package main

import (
	"context"
	"net/http"

	"github.com/coder/websocket"
)

// echo sends each message on a WebSocket connection back. The library itself replies to pings and close frames.
func echo(w http.ResponseWriter, r *http.Request) {
	connection, err := websocket.Accept(w, r, nil)
	if err != nil {
		return // Accept has sent an error response
	}
	defer connection.CloseNow()
	ctx := context.Background() // the library advises against using the request's context
	for {
		kind, message, err := connection.Read(ctx)
		if err != nil {
			return // the client has disconnected
		}
		if err := connection.Write(ctx, kind, message); err != nil {
			return
		}
	}
}
