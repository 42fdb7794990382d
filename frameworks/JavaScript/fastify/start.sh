#!/bin/sh
# Starts the server with the Node.js that package-lock.json pins. If that is not installed, uses Node.js from PATH.
cd "$(dirname "$0")" || exit 1
# npm 9 does not link binaries of OS-specific packages into node_modules/.bin.
for bin in "$PWD"/node_modules/node-linux-*/bin; do PATH="$bin:$PATH"; done
NODE_ENV=production exec node server.js "$@"
