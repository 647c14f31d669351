#!/usr/bin/env bash
# Measures the store alone, the router, and a restart with many objects: run.sh calls it.
#
#   test/bench/store.sh BENCH RESULTS   the built harness; the file to add result lines to
#   OBJECTS=200000                      objects in the server that is restarted
#   STORE_PORT=16543                    a free port
set -euo pipefail
cd "$(dirname "$0")/../.."

bench_binary=$1
results=$2
objects=${OBJECTS:-200000}
port=${STORE_PORT:-16543}
runs=${RUNS:-3}
ready_timeout_seconds=60

setpoint=$PWD/bin/setpoint
dir=$(mktemp -d)
server_pid=

finish() {
  if [[ -n $server_pid ]]; then
    kill "$server_pid" 2>/dev/null || true
    wait "$server_pid" 2>/dev/null || true
  fi
  rm -rf "$dir"
}
trap finish EXIT

bench() { "$bench_binary" "$@" >>"$results"; }

# go_bench PACKAGE NAME FLAGS...: one benchmark that the product brings along, in one process.
go_bench() {
  local package=$1 name=$2
  shift 2
  TMPDIR=$dir "$dir/$package.test" -test.run '^$' -test.bench "^Benchmark$name\$" "$@" >"$dir/$name.txt"
  bench gobench <"$dir/$name.txt"
}

CGO_ENABLED=0 go test -c -o "$dir/raftstore.test" ./raftstore
echo "bench: the store alone" >&2
go_bench raftstore Store -test.benchtime 5s -test.count "$runs"
echo "bench: snapshots of 300 MiB under load" >&2
go_bench raftstore Snapshot -test.benchtime 1x -test.timeout 10m

echo "bench: the router beside a bare reverse proxy" >&2
CGO_ENABLED=0 go test -c -o "$dir/router.test" ./agent/net/router
go_bench router Router -test.benchtime 1x -test.count "$runs"

echo "bench: restart with $objects objects" >&2
data=$dir/server
serve=("$setpoint" server --data-dir "$data" --advertise-address "127.0.0.1:$port" --gossip-address "" --log-level error)
"${serve[@]}" >"$dir/server.log" 2>&1 &
server_pid=$!
deadline=$((SECONDS + ready_timeout_seconds))
until grep -q 'is ready' "$dir/server.log"; do
  if ((SECONDS >= deadline)) || ! kill -0 "$server_pid" 2>/dev/null; then
    echo "bench: the server did not start:" >&2
    cat "$dir/server.log" >&2
    exit 1
  fi
  sleep 0.05
done
bench memory -target setpoint -kubeconfig "$data/admin.kubeconfig" -pids "$server_pid" -pods "$objects" -size 1200 -settle 3s -keep
kill "$server_pid"
wait "$server_pid" 2>/dev/null || true
server_pid=
bench coldstart -as restart -target setpoint -runs "$runs" -kubeconfig "$data/admin.kubeconfig" -exec "exec ${serve[*]@Q} >/dev/null"
