#!/usr/bin/env bash
# Installs the peers of `npm run bench:peers` into .eod/peers, each Python one in an environment of its own, pgloader
# by apt when run by root. Nothing else needs them. A peer that cannot be installed is said at the end; the benchmark
# leaves it out. Run it again at any time; `rm -r .eod/peers` removes all but pgloader.
set -uo pipefail
folder=$(cd "$(dirname "$0")/../.." && pwd)/.eod/peers
mkdir -p "$folder"
log=$folder/install.log
: >"$log"
missing=()

python_peer() { # NAME PACKAGE...
  local name=$1
  shift
  echo "$name: $*"
  if ! { python3 -m venv "$folder/$name" && "$folder/$name/bin/pip" install --disable-pip-version-check --no-input "$@"; } >>"$log" 2>&1; then
    missing+=("$name: $(tail -1 "$log")")
    rm -rf "${folder:?}/$name"
    return 1
  fi
}

python_peer dlt 'dlt[postgres]==1.31.0' pyarrow==26.0.1 adbc-driver-postgresql==1.13.0 adbc-driver-manager==1.13.0 \
  psycopg2-binary==2.9.13
python_peer target-postgres meltanolabs-target-postgres==0.8.1 singer-sdk==0.54.9 'psycopg[binary]==3.3.6' sqlalchemy==2.1.9

# The last version whose package holds the program; those after it fetch it from elsewhere when first called.
if [ "$(uname -sm)" = 'Linux x86_64' ]; then
  python_peer sling sling-linux-amd64==1.4.11 &&
    ln -sf "$(echo "$folder"/sling/lib/python3*/site-packages/sling_linux_amd64/bin/sling-linux-amd64)" "$folder/sling/bin/sling-program"
else
  missing+=('sling: its package holds a program for Linux on x86-64 only')
fi

if ! command -v pgloader >/dev/null; then
  echo 'pgloader: by apt'
  if [ "$(id -u)" != 0 ]; then
    missing+=('pgloader: needs root for apt; install the package pgloader yourself')
  elif ! { apt-get update && apt-get install --yes --no-install-recommends pgloader; } >>"$log" 2>&1; then
    missing+=("pgloader: $(tail -1 "$log")")
  fi
fi

missing+=('ingestr: left out, because its package holds no program: from 1.0 on it is fetched from elsewhere when first called')
echo
echo "Not installed (more in $log):"
printf '  %s\n' "${missing[@]}"
