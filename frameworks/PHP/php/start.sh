#!/bin/bash
# Starts PHP-FPM and nginx, and stops both as soon as one of them exits. Both scale their number of processes with the
# number of CPUs in the affinity mask.
cd "$(dirname "$0")" || exit 1
RUN=$(mktemp -d) || exit 1
CHILDREN=$((8 * $(nproc)))
export RUN CHILDREN
[ "$(id -u)" = 0 ] && user='user root;' # otherwise, root's nginx would run its workers as another user
sed -e "s|RUN|$RUN|; s|FOLDER|$PWD|; s|CPUS|$(nproc)|; s|ADDRESS|${HOST:-0.0.0.0}:${PORT:-8080}|; s|^USER|$user|" \
    nginx.conf >"$RUN/nginx.conf"
version=$(php -r 'echo PHP_MAJOR_VERSION, ".", PHP_MINOR_VERSION;')

stop() { kill -QUIT "$fpm" "$nginx" 2>/dev/null; }
trap stop TERM INT
"php-fpm$version" --nodaemonize --force-stderr --allow-to-run-as-root --fpm-config php-fpm.conf & fpm=$!
nginx -p "$RUN" -c "$RUN/nginx.conf" -e stderr & nginx=$!
wait -n
stop
wait
rm -rf "$RUN"
