#!/bin/sh
# Starts a Granian worker for each usable CPU. nproc counts the CPUs of the affinity mask, not of the machine.
cd "$(dirname "$0")" || exit 1
exec "${VENV:-.venv}/bin/granian" --interface asgi --host "${HOST:-0.0.0.0}" --port "${PORT:-8080}" \
    --workers "$(nproc)" --loop uvloop --backlog 4096 --http 1 --no-ws --workers-kill-timeout 3 app:app
