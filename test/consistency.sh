#!/usr/bin/env bash
# Examines three servers under faults, from outside (test/consistency). The table at the end says
# what was done and found; with violations it exits 1 and keeps histories, data and logs.
#
#   DURATION=5m      how long calm and faults last together (1h: a night)
#   SEED=...         of faults and operations; default: the time
#   FAULTS=kill,cut  first letters of the faults wanted; default: all that are possible here
#   LEADER_KILLS=100 kill so many leaders, nothing else, however long it takes
#   RATE=0           operations a second; 0: as many as go
#   KEEP=DIR         where to keep what is left; default: a new folder below /tmp
#   CLUSTER=compose  the containers of `make compose-up` instead of processes
set -euo pipefail
cd "$(dirname "$0")/.."

keep=${KEEP:-$(mktemp -d /tmp/consistency-XXXXXX)}
tags=() test='^TestConsistency$' binary=(-binary bin/setpoint)
if [[ ${CLUSTER:-} == compose ]]; then
  tags=(-tags compose) test='^TestCompose$' binary=()
fi
CGO_ENABLED=0 go test "${tags[@]}" -count=1 -timeout 24h -run "$test" -v ./test/consistency -args \
  "${binary[@]/#bin/$PWD/bin}" -keep "$keep" -duration "${DURATION:-5m}" -seed "${SEED:-$(date +%s)}" \
  -faults "${FAULTS:-}" -leader-kills "${LEADER_KILLS:-0}" -rate "${RATE:-0}"
[[ -n ${KEEP:-} ]] || rm -rf "$keep" # only of a good run
