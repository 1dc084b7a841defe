#!/bin/sh
# Installs the programs that some tests start, where that is possible without asking: as root on a Debian. Elsewhere, and
# when the installation fails, those tests are skipped with the reason (tests/requirements.py), or fail with CI=true.
set -u

missing=""
command -v promtool >/dev/null || missing="$missing prometheus"
{ command -v pgbouncer || [ -x /usr/sbin/pgbouncer ]; } >/dev/null || missing="$missing pgbouncer"
command -v node >/dev/null || missing="$missing nodejs"
command -v npm >/dev/null || missing="$missing npm"
command -v psql >/dev/null || missing="$missing postgresql-client"
command -v curl >/dev/null || missing="$missing curl"
command -v chromium >/dev/null || missing="$missing chromium"

if [ -z "$missing" ]; then
    exit 0
fi
if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
    echo "not installed, their tests will be skipped:$missing"
    exit 0
fi
echo "installing for the tests:$missing"
# Run level 1 keeps the packages from starting their services.
export DEBIAN_FRONTEND=noninteractive RUNLEVEL=1
# shellcheck disable=SC2086 -- a list of words
{ apt-get -qq update && apt-get -qq install --yes --no-install-recommends $missing; } >/dev/null ||
    echo "apt-get could not install them; their tests will be skipped"
