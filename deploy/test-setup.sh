#!/usr/bin/env bash
# Makes sure that what the tests need is there. It installs what is missing only
# as root on Debian and its kin; elsewhere it says what to install.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { echo "test-setup: $*"; }

require_go() {
  if ! command -v go >/dev/null; then
    say "Go is missing: install $(awk '$1 == "go" {print $2}' go.mod) or newer from https://go.dev/dl" >&2
    exit 1
  fi
}

# require COMMAND PACKAGE REASON
require() {
  local command=$1 package=$2 reason=$3
  if command -v "$command" >/dev/null; then
    return
  fi
  if [[ $(id -u) -ne 0 ]] || ! command -v apt-get >/dev/null; then
    say "$command is missing ($reason): install the package $package" >&2
    exit 1
  fi
  say "installing $package ($reason)"
  apt-get install -y -q --no-install-recommends $package >/dev/null ||
    { apt-get update -q >/dev/null && apt-get install -y -q --no-install-recommends $package >/dev/null; }
}

require_go
require git git "the list of files to check"
require gcc "gcc libc6-dev" "the race detector"
require curl curl "the walk through docs/walkthrough.md"
require openssl openssl "the same"

if [[ $(id -u) -ne 0 ]]; then
  say "not root: tests with real containers, mounts and networks skip themselves and say so"
fi
