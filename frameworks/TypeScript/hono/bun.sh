#!/bin/sh
# Starts the server with the Bun version that package-lock.json pins.
cd "$(dirname "$0")" || exit 1
for bin in "$PWD"/node_modules/@oven/bun-linux-*/bin; do PATH="$bin:$PATH"; done
NODE_ENV=production exec bun src/bun.ts
