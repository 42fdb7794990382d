#!/bin/sh
# Starts a Granian worker for each usable CPU. nproc counts the CPUs in the affinity mask, not all CPUs.
cd "$(dirname "$0")" || exit 1

serve() {
    exec "${VENV:-.venv}/bin/granian" --interface asgi --host "${HOST:-0.0.0.0}" --workers "$(nproc)" --loop uvloop \
        --backlog 4096 --http 1 --no-ws --workers-kill-timeout 3 "$@" app:app
}

[ -n "$HTTPS_PORT" ] || serve --port "${PORT:-8080}"

# A Granian process listens on a single port, so HTTPS needs a second process.
serve --port "$HTTPS_PORT" --ssl-certificate "$TLS_CERT" --ssl-keyfile "$TLS_KEY" &
https=$!
serve --port "${PORT:-8080}" &
http=$!
trap 'kill -TERM "$http" "$https"; wait' TERM INT
wait "$http"
