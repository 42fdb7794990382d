#!/bin/sh
# Starts a Granian worker for each usable CPU. nproc counts the CPUs in the affinity mask, not all CPUs.
cd "$(dirname "$0")" || exit 1
exec "${VENV:-.venv}/bin/granian" --interface wsgi --host "${HOST:-0.0.0.0}" --port "${PORT:-8080}" \
    --workers "$(nproc)" --blocking-threads 16 --backlog 4096 --http 1 --workers-kill-timeout 3 \
    project.wsgi:application
