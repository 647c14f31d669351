#!/usr/bin/env bash
# Measures bin/setpoint on this machine and prints a table beside the goals.
# Results as JSON lines go to $RESULTS, if given. As root it measures real pods too.
#
#   SAMPLES=20 RUNS=3 SETTLE=20s   how much to measure, how long to wait before "idle"
#   PORT=16443                     a free port
#   KILLS=20                       how often the leader of three servers is killed, and stopped in order (default 0)
set -euo pipefail
cd "$(dirname "$0")/../.."

samples=${SAMPLES:-20}
runs=${RUNS:-3}
settle=${SETTLE:-20s}
port=${PORT:-16443}
ready_timeout_seconds=60

setpoint=$PWD/bin/setpoint
[[ -x $setpoint ]] || { echo "bench: no $setpoint: run 'make build', or 'make bench'" >&2; exit 1; }
dir=$(mktemp -d)
results=${RESULTS:-$dir/results.jsonl}
server_pid=

stop_server() {
  if [[ -n $server_pid ]]; then
    kill "$server_pid" 2>/dev/null || true
    wait "$server_pid" 2>/dev/null || true
    server_pid=
  fi
}
finish() {
  stop_server
  rm -rf "$dir"
}
trap finish EXIT

# start NAME COMMAND FLAGS...: a cluster of its own; sets server_pid and kubeconfig.
start() {
  local data=$dir/$1 command=$2
  shift 2
  stop_server
  "$setpoint" "$command" --data-dir "$data" --log-level error "$@" >"$data.log" 2>&1 &
  server_pid=$!
  kubeconfig=$data/admin.kubeconfig
  local deadline=$((SECONDS + ready_timeout_seconds))
  until grep -q 'is ready' "$data.log"; do
    if ((SECONDS >= deadline)) || ! kill -0 "$server_pid" 2>/dev/null; then
      echo "bench: the server did not start:" >&2
      cat "$data.log" >&2
      exit 1
    fi
    sleep 0.05
  done
}

(cd test/bench && CGO_ENABLED=0 go build -o "$dir/bench" .)
bench() { "$dir/bench" "$@" >>"$results"; }

echo "bench: the disk" >&2
bench fsync -dir "$dir" -n 500

echo "bench: cold start, $runs runs" >&2
bench coldstart -target setpoint -runs "$runs" -kubeconfig "$dir/cold/admin.kubeconfig" -clean "rm -rf $dir/cold" \
  -exec "exec $setpoint dev --port 0 --data-dir $dir/cold --simulated-nodes 1 --log-level error >/dev/null"

if [[ $(id -u) -eq 0 ]]; then
  start real dev --port 0
  echo "bench: idle for $settle" >&2
  bench idle -target setpoint -pids "$server_pid" -settle "$settle" -window 10s
  stop_server
  SAMPLES=$samples test/alone.sh unshare --pid --fork --kill-child --mount-proc test/bench/node.sh "$dir/bench" "$results"
else
  echo "bench: not root: no real pods; idle memory is that of simulated nodes" >&2
  start idle dev --port 0 --simulated-nodes 1
  bench idle -target setpoint -pids "$server_pid" -settle "$settle" -window 10s
fi

echo "bench: reactions" >&2
# A server alone: the harness brings its own nodes.
start react server --advertise-address "127.0.0.1:$port" --gossip-address ""
bench react -target setpoint -kubeconfig "$kubeconfig" -pids "$server_pid" -nodes 20 -replicas 50 -samples "$samples"

stop_server
RUNS=$runs test/bench/cluster.sh "$dir/bench" "$results"
RUNS=$runs test/bench/store.sh "$dir/bench" "$results"
echo
"$dir/bench" report <"$results"
