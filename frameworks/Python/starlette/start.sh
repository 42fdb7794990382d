#!/bin/sh
# Starts a Granian worker for each usable CPU. nproc counts the CPUs in the affinity mask, not all CPUs.
cd "$(dirname "$0")" || exit 1
WEB_CONCURRENCY=$(nproc) # the number of workers, which upstream.py reads, too
export WEB_CONCURRENCY

serve() {
    exec "${VENV:-.venv}/bin/granian" --interface asgi --host "${HOST:-0.0.0.0}" --workers "$WEB_CONCURRENCY" \
        --loop uvloop --backlog 4096 --workers-kill-timeout 3 "$@" app:app
}

[ -n "$HTTPS_PORT$H2C_PORT" ] || serve --port "${PORT:-8080}" --http 1

# A Granian process listens on a single port, so HTTPS and HTTP/2 in cleartext need further processes.
serve --port "${PORT:-8080}" --http 1 &
http=$!
processes=$http
if [ -n "$HTTPS_PORT" ]; then
    serve --port "$HTTPS_PORT" --no-ws --ssl-certificate "$TLS_CERT" --ssl-keyfile "$TLS_KEY" & # ALPN selects HTTP/2
    processes="$processes $!"
fi
if [ -n "$H2C_PORT" ]; then
    serve --port "$H2C_PORT" --http 2 --no-ws &
    processes="$processes $!"
fi
trap 'kill -TERM $processes; wait' TERM INT
wait "$http"
