#!/usr/bin/env bash
# The part of run.sh that runs in namespaces of its own: cases look at the node from its first process, at a kubelet's path.
set -euo pipefail

mkdir -p "$KEEP/cluster" /var/lib/kubelet
mount --bind "$KEEP/cluster" /var/lib/kubelet
exec ../conformance/run.sh
