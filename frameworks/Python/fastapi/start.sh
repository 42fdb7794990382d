#!/bin/sh
# Starts a Uvicorn worker for each usable CPU. nproc counts the CPUs in the affinity mask, not all CPUs.
cd "$(dirname "$0")" || exit 1
exec "${VENV:-.venv}/bin/uvicorn" --host "${HOST:-0.0.0.0}" --port "${PORT:-8080}" --workers "$(nproc)" \
    --loop uvloop --http httptools --ws none --backlog 4096 --no-access-log --log-level warning \
    --timeout-keep-alive 75 --timeout-graceful-shutdown 3 app:app
