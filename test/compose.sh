#!/usr/bin/env bash
# The last ring: three servers and three agents in Docker, kubectl, and kills.
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
if docker compose version >/dev/null 2>&1; then
  compose="docker compose"
elif command -v docker-compose >/dev/null; then
  compose=docker-compose
else
  not_run "neither 'docker compose' nor 'docker-compose' is there"
fi
if docker ps -a --format '{{.Names}}' | grep -qE '^(server|agent)-[123]$'; then
  not_run "containers of the same names are there: is a cluster of make compose-up running?"
fi

# within SECONDS WHAT COMMAND...: until the command succeeds.
within() {
  local limit=$1 what=$2
  shift 2
  local start=$SECONDS
  until "$@" >/dev/null 2>&1; do
    if ((SECONDS - start >= limit)); then
      echo "compose: FAIL: $what: not within $limit s"
      k get nodes,pods -A -o wide || true
      $compose logs --tail 30 || true
      exit 1
    fi
    sleep 0.2
  done
  echo "compose: $what: $((SECONDS - start)) s"
}

context=server-1
k() { bin/setpoint kubectl --kubeconfig .compose/admin.kubeconfig --context "$context" --request-timeout 5s "$@"; }
ready_replicas() { [[ $(k get deployment demo -o jsonpath='{.status.readyReplicas}') == "$1" ]]; }
node_not_ready() { k get node "$1" --no-headers | awk '{exit $2 == "Ready"}'; }
node_ready() { k get node "$1" --no-headers | awk '{exit $2 != "Ready"}'; }
leader() { k get lease -n kube-system kube-controller-manager -o jsonpath='{.spec.holderIdentity}' | cut -d_ -f1; }
another_leads() { [[ -n $(leader) && $(leader) != "$1" ]]; }
writes() { k create configmap "probe-$RANDOM" --from-literal=a=b; }
no_pods_on() { ! k get pods -o jsonpath='{.items[*].spec.nodeName}' | grep -q "$1"; }

make --no-print-directory compose-up
trap 'make --no-print-directory compose-down >/dev/null 2>&1' EXIT

k apply -f deploy/samples/demo-fast-eviction.yaml
within 60 "three replicas are ready" ready_replicas 3

victim=$(leader)
for survivor in server-1 server-2 server-3; do
  [[ $survivor == "$victim" ]] || context=$survivor
done
docker kill "$victim" >/dev/null
within 15 "writes after the leader $victim was killed" writes
within 15 "another server runs the control loops" another_leads "$victim"
ready_replicas 3 || { echo "compose: FAIL: pods suffered from the death of a server"; exit 1; }
docker start "$victim" >/dev/null

docker kill agent-2 >/dev/null
within 60 "agent-2 is seen to be dead" node_not_ready agent-2
within 90 "its pods are replaced elsewhere" ready_replicas 3
within 90 "no pod is left on it" no_pods_on agent-2
docker start agent-2 >/dev/null
within 60 "agent-2 is back" node_ready agent-2
echo "compose: ok"
