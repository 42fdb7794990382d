#!/bin/sh
# Starts the server with the Deno version that package-lock.json pins, with one thread per CPU.
cd "$(dirname "$0")" || exit 1
for folder in "$PWD"/node_modules/@deno/linux-*; do PATH="$folder:$PATH"; done
DENO_DIR="${TMPDIR:-/tmp}/deno-$PORT" NODE_ENV=production exec deno serve --parallel --cached-only --no-check \
    --allow-net --allow-env --allow-read --allow-sys --host "${HOST:-0.0.0.0}" --port "${PORT:-8080}" src/deno.ts
