#!/bin/sh
# Starts a granian worker for each CPU of the affinity mask; nproc counts those, not the machine's.
cd "$(dirname "$0")" || exit 1
exec "${VENV:-.venv}/bin/granian" --interface wsgi --host "${HOST:-0.0.0.0}" --port "${PORT:-8080}" \
    --workers "$(nproc)" --blocking-threads 16 --backlog 4096 --http 1 --workers-kill-timeout 3 \
    project.wsgi:application
