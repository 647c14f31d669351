#!/usr/bin/env bash
# Builds programs that others wrote, as they published them, and runs them against
# bin/setpoint. The first run builds for about 25 minutes of CPU; what is
# built is kept.
#
#   RUN=regexp        only these tests, as of go test -run
#   CLIENTS=DIR       where the programs are kept; default: ~/.cache/setpoint-clients
#   TEST_FLAGS=...    more flags for go test
#
# As root, kubectl is also tried on a node with real containers, and upstream's kubelet is a node, in namespaces of its own.
set -euo pipefail
cd "$(dirname "$0")"

helm_versions=(v3.22.0 v4.3.1)
kubectl_versions=(v0.35.10 v0.36.6 v0.37.2) # the library's: v0.37.2 is kubectl v1.37.2
kwok_version=v0.8.0
kubelet_versions=(v1.35.4 v1.36.3 v1.37.1)

export SETPOINT=${SETPOINT:-$PWD/../../bin/setpoint}
export CLIENTS=${CLIENTS:-$HOME/.cache/setpoint-clients}
export CGO_ENABLED=0
mkdir -p "$CLIENTS"
[[ -x $SETPOINT ]] || { echo "clients: no bin/setpoint: run 'make build', or 'make clients'" >&2; exit 2; }

# kubectl's main package is in k8s.io/kubernetes, which is no library: a few lines
# around the same command take its place, with one list of modules for each version.
for version in "${kubectl_versions[@]}"; do
  [[ -x $CLIENTS/kubectl-$version ]] && continue
  echo "clients: building kubectl $version" >&2
  minor=${version%.*}
  list=go.mod
  [[ -f kubectl/$minor.mod ]] && list=$minor.mod
  (cd kubectl && go build -trimpath -modfile="$list" -o "$CLIENTS/kubectl-$version" \
    -ldflags "-s -w -X k8s.io/client-go/pkg/version.gitVersion=${version/v0/v1} -X k8s.io/component-base/version.gitVersion=${version/v0/v1}" .)
done
ln -sf "kubectl-${kubectl_versions[-1]}" "$CLIENTS/kubectl"

# So is the kubelet's. Each builds for five minutes of CPU, for root alone, who can run it.
build_kubelet() {
  local version=k8s.io/component-base/version minor=${1#v1.} list=go.mod
  minor=${minor%%.*}
  [[ -x $CLIENTS/kubelet-$1 ]] && return
  echo "clients: building kubelet $1" >&2
  [[ -f kubelet/v0.$minor.mod ]] && list=v0.$minor.mod
  (cd kubelet && go build -trimpath -modfile="$list" -o "$CLIENTS/kubelet-$1" \
    -ldflags "-s -w -X $version.gitVersion=$1 -X $version.gitMajor=1 -X $version.gitMinor=$minor" .)
}
if ((EUID == 0)); then
  for version in "${kubelet_versions[@]}"; do build_kubelet "$version"; done
  (cd collector && go build -trimpath -ldflags '-s -w' -o "$CLIENTS/collector" .)
fi

# install PROGRAM PACKAGE VERSION builds a program with the modules that its makers chose.
install() {
  [[ -x $CLIENTS/$1-$3 ]] && return
  echo "clients: building $1 $3" >&2
  GOBIN=$CLIENTS/.bin go install -trimpath -ldflags '-s -w' "$2@$3"
  mv "$CLIENTS/.bin/$1" "$CLIENTS/$1-$3"
}
for version in "${helm_versions[@]}"; do
  install helm "helm.sh/helm/${version%%.*}/cmd/helm" "$version"
done
install kwok sigs.k8s.io/kwok/cmd/kwok "$kwok_version"
ln -sf "kwok-$kwok_version" "$CLIENTS/kwok"
KWOK_SOURCE=$(go mod download -json "sigs.k8s.io/kwok@$kwok_version" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p')
export KWOK_SOURCE
go build -trimpath -o "$CLIENTS/" ./operator ./box

export VERSIONS_kubelet="${kubelet_versions[*]}" VERSIONS_helm="${helm_versions[*]}" VERSIONS_kubectl="${kubectl_versions[*]}"
skip=()
if ((EUID != 0)); then
  skip=(-skip '^(TestContainers|TestCollectors|TestKubelet|TestPatroni)$')
elif ! command -v patroni >/dev/null; then
  echo "clients: TestPatroni is left out: apt-get install patroni postgresql" >&2
  skip=(-skip '^TestPatroni$')
fi
go vet ./...
# shellcheck disable=SC2086 # several flags in one variable
exec go test -count=1 -timeout 30m -run "${RUN:-.}" "${skip[@]}" ${TEST_FLAGS:-} .
