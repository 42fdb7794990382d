#!/bin/sh
# Starts the server with the Node.js version in package-lock.json, or with Node.js on PATH if that package is missing.
cd "$(dirname "$0")" || exit 1
# npm 9 creates no link in node_modules/.bin for packages that are restricted to an operating system.
for bin in "$PWD"/node_modules/node-linux-*/bin; do PATH="$bin:$PATH"; done
NODE_ENV=production exec node server.js
