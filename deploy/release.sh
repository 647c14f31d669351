#!/usr/bin/env bash
# Static binaries for Linux in dist/, as they are and compressed, each with a list of the modules in it (SBOM, CycloneDX), and
# SHA256SUMS: deploy/release.sh LDFLAGS
# The same source and the same version of Go make the same bytes, in any folder and on any machine.
set -euo pipefail
cd "$(dirname "$0")/.."

ldflags="$1 -buildid="
export CGO_ENABLED=0 GOOS=linux GOAMD64=v1 GOARM64=v8.0 GOFLAGS="-trimpath -buildvcs=false -gcflags=all=-dwarf=false"

rm -rf dist
mkdir dist
for arch in arm64 amd64; do
  echo "setpoint-linux-$arch, with $("${GO:-go}" env GOVERSION)" >&2
  GOARCH=$arch deploy/build.sh "$PWD/dist/setpoint-linux-$arch" "$ldflags"
  gzip -9nk "dist/setpoint-linux-$arch"
  # From what the linker wrote into the binary. Without the time and a serial number, so that the same binary has the same list.
  (unset GOOS; "${GO:-go}" run github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.10.0 bin \
    -json -noserial -output "dist/setpoint-linux-$arch.cdx.json" "dist/setpoint-linux-$arch")
  sed -i '/^ *"timestamp":/d' "dist/setpoint-linux-$arch.cdx.json"
done
(cd dist && sha256sum setpoint-* | tee SHA256SUMS)
