#!/usr/bin/env bash
# Static binaries for Linux in dist/, as they are and compressed, each with a list of the modules in it (SBOM, CycloneDX) and an image;
# the licences of all that is linked, manual pages, completions, and SHA256SUMS: deploy/release.sh LDFLAGS
# The same source and the same version of Go make the same bytes, in any folder and on any machine with Linux.
set -euo pipefail
cd "$(dirname "$0")/.."

ldflags="$1 -buildid="
go=${GO:-go}
export CGO_ENABLED=0 GOAMD64=v1 GOARM64=v8.0 GOFLAGS="-trimpath -buildvcs=false -gcflags=all=-dwarf=false"
host=$("$go" env GOHOSTARCH)

rm -rf dist
mkdir dist
"$go" build -o dist/release ./deploy/release
own="dist/setpoint-linux-$host" # runs here

# built ARCHITECTURE: the binary, and its list of modules from what the linker wrote into it. Without the time and a serial number,
# so that the same binary has the same list.
built() {
  local name="setpoint-linux-$1"
  echo "$name, with $("$go" env GOVERSION)" >&2
  GOOS=linux GOARCH=$1 deploy/build.sh "$PWD/dist/$name" "$ldflags"
  gzip -9nk "dist/$name"
  "$go" run github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.10.0 bin -json -noserial -output "dist/$name.cdx.json" "dist/$name"
  sed -i '/^ *"timestamp":/d' "dist/$name.cdx.json"
}
# packed NAME: a folder of dist as an archive that is the same wherever it is made.
packed() {
  tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --mode=go=rX,u+rw -C dist -cf - "$1" | gzip -9n >"dist/setpoint-$1.tar.gz"
  rm -r "dist/${1:?}"
}

for arch in arm64 amd64; do built "$arch"; done
version=$("$own" version -o json | sed -n 's/.*"setpoint": *"\([^"]*\)".*/\1/p')
for arch in arm64 amd64; do dist/release image "dist/setpoint-linux-$arch" "$arch" "$version" "dist/setpoint-image-linux-$arch.tar"; done
# The small program that holds pods is inside the binary, with modules of its own.
dist/release notices dist/setpoint-linux-{amd64,arm64} agent/runtime/cri/embedded/shimbinary/setpoint-shim.bin >dist/setpoint-notices
rm dist/release

mkdir dist/man dist/completions
# No settings of whoever makes the release stand in the pages.
env -i "$own" man --out dist/man
for shell in bash zsh fish powershell; do "$own" completion "$shell" >"dist/completions/setpoint.$shell"; done
packed man
packed completions
(cd dist && sha256sum setpoint-* | tee SHA256SUMS)
