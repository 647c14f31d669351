#!/usr/bin/env bash
# Builds upstream's kube-apiserver and etcd once, and prints the folder that has them, for KUBEBUILDER_ASSETS. The first
# run takes about ten minutes of CPU; they are kept. Two at once: the second waits for the first.
#
#   ASSETS=DIR        where they are kept; default: ~/.cache/setpoint-envtest/VERSION
set -euo pipefail
cd "$(dirname "$0")"

# As in the Makefile, so that the build cache is shared.
export CGO_ENABLED=0 GOFLAGS="${GOFLAGS:--trimpath -buildvcs=false -gcflags=all=-dwarf=false}"

version=$(go list -m -f '{{.Version}}' k8s.io/kubernetes)
assets=${ASSETS:-$HOME/.cache/setpoint-envtest/$version}
mkdir -p "$assets"
exec 9>"$assets/.lock"
flock 9

# build PROGRAM PACKAGE LINKFLAGS
build() {
  [[ -x $assets/$1 ]] && return
  echo "upstream: building $1" >&2
  nice go build -trimpath -ldflags "-s -w $3" -o "$assets/$1" "$2" 9>&-
}
minor=${version#v1.}
base=k8s.io/component-base/version
build kube-apiserver k8s.io/kubernetes/cmd/kube-apiserver \
  "-X $base.gitVersion=$version -X $base.gitMajor=1 -X $base.gitMinor=${minor%%.*}"
build etcd go.etcd.io/etcd/server/v3 ""
echo "$assets"
