#!/usr/bin/env bash
# Examines servers under faults, from outside (test/consistency). The table at the end says
# what was done and found; with violations it exits 1 and keeps histories, data and logs.
#
#   DURATION=5m      how long calm and faults last together (1h: a night)
#   SEED=...         of faults and operations; default: the time
#   SERVERS=5        how many; default: 3
#   OTHER=FILE       another build, which every second server runs
#   GAP_MAX=2s       fail if a fault of one server holds up writes for longer, 1 of 100 times left out
#   FAULTS=kill,cut  first letters of the faults wanted; default: all that are possible here
#   LEADER_KILLS=100 kill so many leaders, nothing else, however long it takes
#   LINGER=60s       how long each fault lasts: long enough for nodes to be taken for lost
#   RATE=0           operations a second; 0: as many as go
#   KEEP=DIR         where to keep what is left; default: a new folder below /tmp
#   CLUSTER=compose  the containers of `make compose-up` instead of processes
set -euo pipefail
cd "$(dirname "$0")/.."

keep=${KEEP:-$(mktemp -d /tmp/consistency-XXXXXX)}
what=(-run '^TestConsistency$') binary=(-binary "$PWD/bin/setpoint")
if [[ ${CLUSTER:-} == compose ]]; then
  if docker ps -a --format '{{.Names}}' | grep -qE '^(server|agent)-[123]$'; then
    echo "consistency: containers of the same names are there: is a cluster of make compose-up running?" >&2
    exit 1
  fi
  what=(-tags compose -run '^TestCompose$') binary=()
  trap 'make --no-print-directory compose-down >/dev/null 2>&1' EXIT
  make --no-print-directory compose-up
fi
CGO_ENABLED=0 go test -count=1 -timeout 24h "${what[@]}" -v ./test/consistency -args "${binary[@]}" \
  -keep "$keep" -duration "${DURATION:-5m}" -seed "${SEED:-$(date +%s)}" \
  -faults "${FAULTS:-}" -leader-kills "${LEADER_KILLS:-0}" -linger "${LINGER:-0s}" -rate "${RATE:-0}" -whole \
  -servers "${SERVERS:-3}" -gap-max "${GAP_MAX:-0s}" -other "${OTHER:-}"
[[ -n ${KEEP:-} ]] || rm -rf "$keep" # only of a good run
