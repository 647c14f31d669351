#!/usr/bin/env bash
# Runs a command (root) in network and mount namespaces of its own. The machine has an address there beside loopback, 192.0.2.10,
# and a default route; nothing else can be reached.
set -euo pipefail

if [[ ${1:-} != --inside ]]; then
  exec unshare --net --mount --propagation slave "$0" --inside "$@"
fi
shift
ip link set lo up
ip link add outside type veth peer name beyond
ip address add 192.0.2.10/24 dev outside
ip link set outside up
ip link set beyond up
ip route add default via 192.0.2.1
exec "$@"
