#!/bin/sh
# Starts a Uvicorn worker for each usable CPU. nproc counts the CPUs in the affinity mask, not all CPUs.
cd "$(dirname "$0")" || exit 1
WEB_CONCURRENCY=$(nproc) # Uvicorn's variable for the number of workers
export WEB_CONCURRENCY
exec "${VENV:-.venv}/bin/uvicorn" --host "${HOST:-0.0.0.0}" --port "${PORT:-8080}" --workers "$WEB_CONCURRENCY" \
    --loop uvloop --http httptools --ws none --backlog 4096 --no-access-log --log-level warning --no-server-header \
    --timeout-keep-alive 75 --timeout-graceful-shutdown 3 app:app
