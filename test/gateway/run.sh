#!/usr/bin/env bash
# Judges the Gateway API of bin/setpoint by upstream's conformance suite, on one real node in a network
# namespace of its own (doc.go). Exits 1 if a case fails. Writes report.yaml with UPDATE=1.
#
#   RUN=name    only this case: HTTPRouteWeight
#   UPDATE=1    write report.yaml
#   KEEP=DIR    where cluster, logs and report go; default: a new folder below /tmp, removed if all is well
set -euo pipefail
cd "$(dirname "$0")"

((EUID == 0)) || { echo "gateway: real containers need root" >&2; exit 2; }
setpoint=$PWD/../../bin/setpoint
[[ -x $setpoint ]] || { echo "gateway: no bin/setpoint: run 'make build', or 'make gateway'" >&2; exit 2; }
suite_dir=${SUITE_DIR:-$HOME/.cache/setpoint-gateway}
keep=${KEEP:-$(mktemp -d /tmp/gateway-XXXXXX)}
mkdir -p "$suite_dir/images" "$keep"
keep=$(cd "$keep" && pwd)

export CGO_ENABLED=0
go build -trimpath -ldflags '-s -w' -o "$suite_dir/echo-basic" sigs.k8s.io/gateway-api/conformance/echo-basic
go run -trimpath ./images -echo "$suite_dir/echo-basic" -out "$suite_dir/images/echo.tar"
go test -c -vet=off -trimpath -o "$suite_dir/gateway.test" .

export setpoint suite_dir keep
export run=${RUN:-} version
version=$(git describe --always --dirty 2>/dev/null || echo unreleased)
../alone.sh bash -euo pipefail inside.sh && passed=1 || passed=
if [[ ${UPDATE:-} == 1 && -s $keep/report.yaml ]]; then cp "$keep/report.yaml" report.yaml; fi
[[ -n $passed ]] || { echo "gateway: see $keep" >&2; exit 1; }
[[ -n ${KEEP:-} ]] || rm -rf --one-file-system "$keep"
