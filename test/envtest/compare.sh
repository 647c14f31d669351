#!/usr/bin/env bash
# Plays the same small test with envtest and upstream's kube-apiserver and etcd, with envtest and bin/setpoint in their
# place, and with setpointtest, in turn, and prints the medians as a table. The first run builds kube-apiserver and
# etcd: about ten minutes of CPU; they are kept.
#
#   ROUNDS=11         how often each plays it
#   ASSETS=DIR        where kube-apiserver and etcd are kept; default: ~/.cache/setpoint-envtest/VERSION
set -euo pipefail
cd "$(dirname "$0")"

setpoint=${SETPOINT:-$PWD/../../bin/setpoint}
rounds=${ROUNDS:-11}
# As in the Makefile, so that the build cache is shared.
export CGO_ENABLED=0 GOFLAGS="${GOFLAGS:--trimpath -buildvcs=false -gcflags=all=-dwarf=false}"
[[ -x $setpoint ]] || { echo "compare: no bin/setpoint: run 'make build', or 'make envtest-compare'" >&2; exit 2; }

version_of() { go -C upstream list -m -f '{{.Version}}' "$1"; }
kubernetes=$(version_of k8s.io/kubernetes)
etcd=$(version_of go.etcd.io/etcd/server/v3)

UPSTREAM_ASSETS=$(upstream/build.sh)
SETPOINT_ASSETS=$("$setpoint" envtest-assets)
export UPSTREAM_ASSETS SETPOINT_ASSETS
echo "kube-apiserver $kubernetes and etcd $etcd; $(nproc) cores; load $(cut -d ' ' -f 1-3 /proc/loadavg); $(date -u +%F)"
exec go test -count=1 -timeout 60m -run '^$' -bench '^BenchmarkCompare$' -benchtime "${rounds}x" .
