#!/bin/sh
# Creates .venv with the packages that requirements.lock pins by hash, unless .venv is up to date.
cd "$(dirname "$0")" || exit 1
[ .venv/requirements.lock -nt requirements.lock ] && exit 0
python3 -m venv --clear .venv &&
    .venv/bin/pip install --quiet --disable-pip-version-check --only-binary :all: --require-hashes -r requirements.lock &&
    cp requirements.lock .venv/requirements.lock
