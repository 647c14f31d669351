#!/usr/bin/env bash
# Judges CSI by upstream's sidecars, mock driver and suite, on one real node in namespaces of its own (doc.go).
# test/conformance/run.sh builds and runs the suite; FOCUS, SKIP, PROCS, TIMEOUT, UPDATE and KEEP are described there.
set -euo pipefail
cd "$(dirname "$0")"

((EUID == 0)) || { echo "csi: real containers need root" >&2; exit 2; }
export CSI_PROGRAMS=${CSI_PROGRAMS:-$HOME/.cache/setpoint-csi}
export LIST=$PWD BESIDE=$PWD/beside.sh SUITE_FLAG=-storage.testdriver=$PWD/driver.yaml CLASS=C
export KEEP=${KEEP:-$(mktemp -d /tmp/csi-XXXXXX)}
mkdir -p "$CSI_PROGRAMS"

export CGO_ENABLED=0
for sidecar in $(go list -f '{{.ImportPath}}' tool); do
  go build -trimpath -ldflags '-s -w' -o "$CSI_PROGRAMS/${sidecar##*/}" "$sidecar"
done
go build -trimpath -ldflags '-s -w' -o "$CSI_PROGRAMS/driver" ./driver
BUILD_ONLY=1 ../conformance/run.sh
exec ../alone.sh unshare --pid --fork --kill-child --mount-proc ./inside.sh
