#!/usr/bin/env bash
# Sends the manifests of other projects to upstream's kube-apiserver and to bin/setpoint, and prints how their answers differ. The first run
# builds kube-apiserver and etcd, and fetches the projects: about ten minutes of CPU; they are kept.
#
#   NAME=regexp       only these projects: manifests/modules.txt
set -euo pipefail
cd "$(dirname "$0")"

setpoint=${SETPOINT:-$PWD/../../bin/setpoint}
# As in the Makefile, so that the build cache is shared.
export CGO_ENABLED=0 GOFLAGS="${GOFLAGS:--trimpath -buildvcs=false -gcflags=all=-dwarf=false}"
[[ -x $setpoint ]] || { echo "manifests: no bin/setpoint: run 'make build', or 'make manifests'" >&2; exit 2; }
UPSTREAM_ASSETS=$(upstream/build.sh)
SETPOINT_ASSETS=$("$setpoint" envtest-assets)
export UPSTREAM_ASSETS SETPOINT_ASSETS
exec go run ./manifests "${NAME:-.}"
