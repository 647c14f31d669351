#!/usr/bin/env bash
# Measures what the garbage collector, the end of a namespace and statuses cost, of several builds in turn, so that what else
# the machine does falls on all alike. Each round starts each build on an empty folder.
#
#   test/bench/collect.sh now=bin/setpoint old=/path/to/another
#
#   ROUNDS=5        rounds
#   OBJECTS=10000   pods of ReplicaSets, objects of the namespace, and pods of Deployments
#   NODES=100       simulated nodes, of 110 pods each
#   WHAT="collect statuses"
set -euo pipefail
builds=("$@")
((${#builds[@]} > 0)) || { sed -n '2,11s/^# \{0,1\}//p' "$0" >&2; exit 2; }
bench=$(mktemp -d)
(cd "$(dirname "$0")" && go build -o "$bench/bench" .)
pid=
finish() {
  [[ -z $pid ]] || { kill "$pid" && wait "$pid"; } 2>/dev/null || true
  rm -rf "$bench"
}
trap finish EXIT

start() { # PROGRAM
  local ready_timeout_seconds=120 deadline
  deadline=$((SECONDS + ready_timeout_seconds))
  rm -rf "$bench/data"
  "$1" dev --data-dir "$bench/data" --port 0 --simulated-nodes "${NODES:-100}" --log-level warn >"$bench/log" 2>&1 &
  pid=$!
  until grep -q 'is ready' "$bench/log"; do
    ((SECONDS < deadline)) && kill -0 "$pid" || { cat "$bench/log" >&2; exit 2; }
    sleep 0.2
  done
  sleep 10 # nodes register
}

for ((round = 1; round <= ${ROUNDS:-5}; round++)); do
  for build in "${builds[@]}"; do
    start "${build#*=}"
    for what in ${WHAT:-collect statuses}; do
      flags=(-objects "${OBJECTS:-10000}")
      [[ $what == collect ]] || flags=(-pods "${OBJECTS:-10000}" -deployments "$((${OBJECTS:-10000} / 10))")
      "$bench/bench" "$what" -kubeconfig "$bench/data/admin.kubeconfig" -target "${build%%=*}" -pids "$pid" "${flags[@]}"
    done
    kill "$pid" && wait "$pid" 2>/dev/null || true
    pid=
  done
done
