#!/usr/bin/env bash
# Measures real pods on a node of its own, with a server beside it (root): run.sh calls it, below ../alone.sh in a PID namespace.
#
#   test/bench/node.sh BENCH RESULTS      the built harness; the file to add result lines to
#   SAMPLES=20 PODS=100 IDLE=60s          pods one after another; pods at once, and how long they are left alone
set -euo pipefail
cd "$(dirname "$0")/../.."
root=$PWD

bench_binary=$1
results=$2
image=bench.local/idle:v1
ready_timeout_seconds=60

setpoint=${SETPOINT:-$PWD/bin/setpoint}
dir=$(mktemp -d)
export KUBECONFIG=$dir/server/admin.kubeconfig
# What ends with the PID namespace are processes; mounts must go before their folder.
finish() { umount -l "$dir"; rm -rf "$dir"; }
mount --bind "$dir" "$dir"
mount --make-rprivate "$dir"
cd "$dir"
trap finish EXIT

# pack makes the image of a program that does nothing, so that what is measured is the node.
pack() {
  mkdir "$dir/pack"
  (cd "$root/test/bench" && CGO_ENABLED=0 go build -ldflags='-s -w' -o "$dir/pack/idle" ./idle)
  cd "$dir/pack"
  tar -cf layer.tar idle
  printf '{"architecture":"%s","os":"linux","config":{"Entrypoint":["/idle"]},"rootfs":{"type":"layers","diff_ids":["sha256:%s"]}}' \
    "$(go env GOARCH)" "$(sha256sum layer.tar | cut -d' ' -f1)" >config.json
  printf '[{"Config":"config.json","RepoTags":["%s"],"Layers":["layer.tar"]}]' "$image" >manifest.json
  mkdir -p "$dir/agent/images"
  tar -cf "$dir/agent/images/idle.tar" manifest.json config.json layer.tar
  cd "$dir"
}
await() {
  local what=$1 deadline=$((SECONDS + ready_timeout_seconds))
  shift
  until "$@" >/dev/null 2>&1; do
    ((SECONDS < deadline)) || { echo "bench: $what did not start:" >&2; cat "$dir"/*.log >&2; exit 1; }
    sleep 0.05
  done
}

pack
"$setpoint" server --data-dir "$dir/server" --advertise-address 127.0.0.1:16443 --gossip-address "" --log-level error >"$dir/server.log" 2>&1 &
await "the server" grep -q 'is ready' "$dir/server.log"
"$setpoint" token create >"$dir/token"
"$setpoint" agent --name node --data-dir "$dir/agent" --token-file "$dir/token" --servers 127.0.0.1:16443 --gossip-address "" --port 10251 \
  --ingress-http-port 0 --ingress-https-port 0 --log-level error >"$dir/agent.log" 2>&1 &
agent=$!
await "the agent" "$setpoint" kubectl wait --for=condition=Ready node/node --timeout=1s

measure=(-target setpoint -kubeconfig "$KUBECONFIG" -pids "$agent")
echo "bench: real pods, one after another" >&2
"$bench_binary" podstart "${measure[@]}" -image "$image" -samples "${SAMPLES:-20}" >>"$results"
echo "bench: real pods at once" >&2
"$bench_binary" crowd "${measure[@]}" -image "$image" -probe "/idle no" -pods "${PODS:-100}" -idle "${IDLE:-60s}" -pods-dir "$dir/agent/pods" >>"$results"
