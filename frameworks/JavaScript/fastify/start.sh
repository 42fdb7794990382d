#!/bin/sh
# Starts the server with the Node that package-lock.json pins, or with the one on PATH if that package is not installed.
cd "$(dirname "$0")" || exit 1
# Not node_modules/.bin: npm 9 creates no link there for a package that is restricted to an operating system.
for bin in "$PWD"/node_modules/node-linux-*/bin; do PATH="$bin:$PATH"; done
NODE_ENV=production exec node server.js
