#!/usr/bin/env bash
# Starts the cluster of docker-compose.yml and waits until its nodes are Ready.
# $1: the compose command, "docker compose" or "docker-compose". PREFIX and PORTS: see compose-env.sh.
set -euo pipefail
cd "$(dirname "$0")/.."
source deploy/compose-env.sh

compose=${1:-docker compose}
ready_timeout_seconds=${READY_TIMEOUT_SECONDS:-120}
nodes_wanted=3
kubeconfig=$folder/admin.kubeconfig

# The folders belong to whoever calls, or Docker would make them as root.
mkdir -p "$folder/join" "$folder/images"
export SETPOINT_UID SETPOINT_GID
SETPOINT_UID=$(id -u)
SETPOINT_GID=$(id -g)

$compose up -d

ready_nodes() {
  bin/setpoint kubectl --kubeconfig "$kubeconfig" --request-timeout 5s get nodes --no-headers 2>/dev/null | awk '$2 == "Ready"' | wc -l
}

deadline=$((SECONDS + ready_timeout_seconds))
until [[ $(ready_nodes || true) -ge $nodes_wanted ]]; do
  if ((SECONDS >= deadline)); then
    echo "the cluster is not ready after ${ready_timeout_seconds} s; its state:" >&2
    $compose ps >&2
    $compose logs --tail 20 >&2
    exit 1
  fi
  sleep 0.5
done

echo "three servers and three agents are ready:"
echo
echo "  export KUBECONFIG=$PWD/$kubeconfig"
echo "  bin/setpoint kubectl get nodes"
