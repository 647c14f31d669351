#!/usr/bin/env bash
# Runs the driver and upstream's sidecars beside a cluster, until it is told to end: beside.sh KUBECONFIG DIR. What they say is in DIR/csi.
set -euo pipefail

export KUBECONFIG=$1
keep=$2 dir=$2/csi
ready_timeout_seconds=60
pids=()
trap 'kill "${pids[@]}" 2>/dev/null || true; wait; exit 0' TERM INT
mkdir -p "$dir"
kubectl=$keep/kubectl

start() {
  "$CSI_PROGRAMS/$1" "${@:2}" >"$dir/$1.log" 2>&1 &
  pids+=($!)
}
sidecar() { start "$1" --kubeconfig "$KUBECONFIG" --csi-address "$dir/csi.sock" "${@:2}"; }

"$kubectl" apply -f "$(dirname "$0")/objects.yaml"
start driver -agent-dir "$keep/cluster" -dir "$dir"
sidecar csi-provisioner --default-fstype ext4
sidecar csi-attacher
sidecar csi-resizer
deadline=$((SECONDS + ready_timeout_seconds))
until "$kubectl" get csinodes -o yaml | grep -q 'name: mock.csi.setpoint.local'; do
  ((SECONDS < deadline)) || { echo 'the node does not know the driver'; exit 1; }
  sleep 0.2
done
echo ready
wait
