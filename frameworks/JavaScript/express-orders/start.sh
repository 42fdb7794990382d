#!/bin/sh
# Starts the server on the Node that package-lock.json pins, or on the one on PATH where that package isn't installed.
cd "$(dirname "$0")" || exit 1
# Not node_modules/.bin: npm 9 makes no link there for a package that an operating system restricts.
for bin in "$PWD"/node_modules/node-linux-*/bin; do PATH="$bin:$PATH"; done
NODE_ENV=production exec node server.js
