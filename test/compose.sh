#!/usr/bin/env bash
# The last ring: three servers and three agents in Docker, and kills (test/compose).
# Where no Docker daemon answers it says so and is not run; COMPOSE=1 makes that
# a failure.
set -euo pipefail
cd "$(dirname "$0")/.."

not_run() {
  echo "compose: not run: $*"
  [[ ${COMPOSE:-} != 1 ]]
  exit
}

[[ ${COMPOSE:-} != 0 ]] || not_run "COMPOSE=0"
timeout 10 docker info >/dev/null 2>&1 || not_run "no Docker daemon answers"
docker compose version >/dev/null 2>&1 || command -v docker-compose >/dev/null ||
  not_run "neither 'docker compose' nor 'docker-compose' is there"
if docker ps -a --format '{{.Names}}' | grep -qE '^(server|agent)-[123]$'; then
  not_run "containers of the same names are there: is a cluster of make compose-up running?"
fi

trap 'make --no-print-directory compose-down >/dev/null 2>&1' EXIT
make --no-print-directory compose-up
# make test says how failed tests are run again.
if [[ -n ${AGAIN:-} ]]; then
  CGO_ENABLED=0 "$AGAIN" -count=1 -vet=off -timeout 10m -tags compose -- ./test/compose
else
  CGO_ENABLED=0 go test -count=1 -vet=off -timeout 10m -tags compose ./test/compose
fi
