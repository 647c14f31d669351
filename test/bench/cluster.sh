#!/usr/bin/env bash
# Measures three server processes on this machine: run.sh calls it.
#
#   test/bench/cluster.sh BENCH RESULTS   the built harness; the file to add result lines to
#   RUNS=3 KILLS=0                        runs of each case; how often the leader is killed, and stopped
#   WHAT="floor memory list watch write read"   what is measured, in this order; idle: before all of it; sched: before write
#   SETPOINT=bin/setpoint TARGET=setpoint the build, and its name in the results
#   CLUSTER_PORT=16643                    the first of three free ports
set -euo pipefail
cd "$(dirname "$0")/../.."

bench_binary=$1
results=$2
runs=${RUNS:-3}
kills=${KILLS:-0}
port=${CLUSTER_PORT:-16643}
ready_timeout_seconds=60

setpoint=${SETPOINT:-$PWD/bin/setpoint}
dir=$(mktemp -d)
servers=s1=127.0.0.1:$port,s2=127.0.0.1:$((port + 1)),s3=127.0.0.1:$((port + 2))
kubeconfigs=$dir/trust/s1.kubeconfig,$dir/trust/s2.kubeconfig,$dir/trust/s3.kubeconfig
declare -A pids

finish() {
  for pid in "${pids[@]}"; do
    kill -9 "$pid" 2>/dev/null || true
    wait "$pid" 2>/dev/null || true
  done
  rm -rf "$dir"
}
trap finish EXIT

start() {
  "$setpoint" server --name "$1" --data-dir "$dir/$1" --initial-servers "$servers" --trust-dir "$dir/trust" \
    --gossip-address "" --log-level error >"$dir/$1.log" 2>&1 &
  pids[$1]=$!
}

await_ready() {
  local deadline=$((SECONDS + ready_timeout_seconds))
  until grep -q 'is ready' "$dir/$1.log"; do
    if ((SECONDS >= deadline)) || ! kill -0 "${pids[$1]}" 2>/dev/null; then
      echo "bench: server $1 did not start:" >&2
      cat "$dir/$1.log" >&2
      exit 1
    fi
    sleep 0.05
  done
}

bench() {
  local measurement=$1
  shift
  "$bench_binary" "$measurement" -target "${TARGET:-setpoint}" -kubeconfig "$kubeconfigs" -pids "$(IFS=,; echo "${pids[*]}")" "$@" >>"$results"
}

leader() {
  { "$setpoint" cluster status --kubeconfig "$dir/trust/admin.kubeconfig" -o json || true; } | sed -n 's/.*"leader": "\(.*\)".*/\1/p' | head -n 1
}

# end_leader SIGNAL: under writers; the server comes back afterwards.
end_leader() {
  local victim
  victim=$(leader)
  bench failover -signal "$1" -kill-pid "${pids[$victim]}" -kill-after 2s -duration 6s
  { wait "${pids[$victim]}" || true; } 2>/dev/null
  start "$victim"
  await_ready "$victim"
}

"$setpoint" cluster init --servers "$servers" --out "$dir/trust" >/dev/null
for name in s1 s2 s3; do start "$name"; done
for name in s1 s2 s3; do await_ready "$name"; done

# measure NAME PROGRESS FLAGS...: if WHAT has it.
measure() {
  local name=$1 progress=$2
  shift 2
  [[ " ${WHAT:-memory list watch write read} " == *" $name "* ]] || return 0
  echo "bench: three servers: $progress" >&2
  bench "$name" "$@"
}

measure idle "idle" -settle 20s -window 30s
if [[ -z ${WHAT:-} || " $WHAT " == *" floor "* ]]; then
  echo "bench: three servers that do nothing" >&2
  "$bench_binary" floor -clients 64 -duration 4s -runs "$runs" >>"$results"
fi
measure memory "memory with 10,000 pods" -pods 10000 -settle 12s
measure list "LIST of 10,000 pods" -pods 10000 -runs "$runs"
measure watch "1,000 watchers" -watchers 1000 -rate 200 -duration 5s -runs "$runs"
measure sched "5,000 pods on 100 nodes" -nodes 100 -pods 5000
measure write "writes" -clients 1,64 -duration 4s -runs "$runs"
measure read "reads" -clients 64 -runs "$runs"
for ((i = 1; i <= kills; i++)); do
  echo "bench: three servers: the leader is killed, then stopped: $i of $kills" >&2
  end_leader KILL
  end_leader TERM
done
