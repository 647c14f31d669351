#!/usr/bin/env bash
# Makes sure that what `make generate` needs is there. The Go generators are tools
# of go.mod; only protoc comes from outside.
set -euo pipefail

if command -v protoc >/dev/null; then
  exit 0
fi
if [[ $(id -u) -ne 0 ]] || ! command -v apt-get >/dev/null; then
  echo "generate-setup: protoc is missing: install the package protobuf-compiler" >&2
  exit 1
fi
echo "generate-setup: installing protobuf-compiler"
apt-get install -y -q --no-install-recommends protobuf-compiler >/dev/null ||
  { apt-get update -q >/dev/null && apt-get install -y -q --no-install-recommends protobuf-compiler >/dev/null; }
