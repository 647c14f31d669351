#!/usr/bin/env bash
# How costs grow with a cluster: at several sizes, each on an empty folder, a cluster of simulated nodes is filled, and then the same changes
# are made in it. Ends with a table of the costs and of the power of the size with which each grows.
#
#   test/bench/scale.sh
#
#   SIZES="125 250 500 1000"   nodes; each has 30 pods, 3 Deployments and 2 Services, and every fifth a definition
#   SERVERS=3                  servers, which with all nodes are one process
#   SETPOINT=bin/setpoint      the build
#   RESULTS=FILE               result lines are kept there
set -euo pipefail
cd "$(dirname "$0")/../.."
setpoint=${SETPOINT:-$PWD/bin/setpoint}
dir=$(mktemp -d)
results=${RESULTS:-$dir/results}
pid=
finish() {
  [[ -z $pid ]] || { kill "$pid" && wait "$pid"; } 2>/dev/null || true
  rm -rf "$dir"
}
trap finish EXIT
(cd test/bench && go build -o "$dir/bench" .)

start() { # NODES
  local ready_timeout_seconds=300 deadline
  deadline=$((SECONDS + ready_timeout_seconds))
  rm -rf "$dir/data"
  "$setpoint" dev --servers "${SERVERS:-3}" --data-dir "$dir/data" --port 0 --simulated-nodes "$1" --pod-cidr 10.128.0.0/9 --log-level warn >"$dir/log" 2>&1 &
  pid=$!
  until grep -q 'is ready' "$dir/log"; do
    ((SECONDS < deadline)) && kill -0 "$pid" || { cat "$dir/log" >&2; exit 2; }
    sleep 0.2
  done
}

: >"$results"
for size in ${SIZES:-125 250 500 1000}; do
  start "$size"
  "$dir/bench" scale -kubeconfig "$dir/data/admin.kubeconfig" -target setpoint -pids "$pid" -nodes "$size" >>"$results"
  kill "$pid" && wait "$pid" 2>/dev/null || true
  pid=
done
"$dir/bench" growth <"$results"
