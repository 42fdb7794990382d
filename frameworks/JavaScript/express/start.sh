#!/bin/sh
# Starts the server on the Node that package-lock.json pins, or on the one on PATH where that package isn't installed.
cd "$(dirname "$0")" || exit 1
PATH="$PWD/node_modules/.bin:$PATH" NODE_ENV=production exec node server.js
