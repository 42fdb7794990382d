#!/bin/sh
# Makes .venv with what requirements.lock pins by hash; nothing where that is done.
cd "$(dirname "$0")" || exit 1
[ .venv/requirements.lock -nt requirements.lock ] && exit 0
python3 -m venv --clear .venv &&
    .venv/bin/pip install --quiet --disable-pip-version-check --only-binary :all: --require-hashes -r requirements.lock &&
    cp requirements.lock .venv/requirements.lock
