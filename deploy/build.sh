#!/usr/bin/env bash
# Builds setpoint with its shim inside, and shows how far it is: deploy/build.sh OUTPUT LDFLAGS
# GOARCH and the like choose the platform. What go says is passed on; nothing is shown when nothing has to be compiled.
set -euo pipefail
cd "$(dirname "$0")/.."

# How long the first build takes, measured with an empty build cache and with the modules there:
#   time GOCACHE=$(mktemp -d) make build
first_build="The first build takes a while: 3 min 51 s on 2 cores (5 min 47 s of CPU time). Later ones take seconds."
lines_every=200 # packages for each line where nobody looks at a terminal

output=$1 ldflags=$2
go=${GO:-go}
module=$("$go" list -m)
product=./cmd/setpoint
# Pods are held by a small program of their own, carried inside the binary.
shim=./agent/runtime/cri/embedded/shim/setpoint-shim
embedded=agent/runtime/cri/embedded/shimbinary/setpoint-shim.bin

show() { # in place on a terminal
  if [[ -t 2 ]]; then
    printf '\r%.*s\e[K' "$((${COLUMNS:-80} - 1))" "$1" >&2
  elif ((compiled > 0 && compiled % lines_every == 0)); then
    printf '%s\n' "$1" >&2
  fi
}

pass() { # on lines of its own
  [[ ! -t 2 ]] || printf '\r\e[K' >&2
  (($# == 0)) || printf '%s\n' "$1" >&2
}

progress() {
  local line total='' compiled=0 downloaded=0 told=
  while IFS= read -r line; do
    case $line in
      "total "*) total=${line#total } ;;
      "go: downloading "*)
        downloaded=$((downloaded + 1))
        show "downloading modules: $downloaded, ${line#go: downloading }"
        ;;
      *[!a-zA-Z0-9._~/-]* | '') pass "$line" ;;
      *)
        compiled=$((compiled + 1))
        if [[ -z $told && $line != "$module"* ]]; then
          told=yes
          pass "$first_build"
        fi
        show "compiled $compiled of at most $total packages: $line"
        ;;
    esac
  done
  pass
}

{
  echo "total $("$go" list -deps "$product" | wc -l)"
  "$go" build -v -ldflags "$ldflags" -o "$embedded" "$shim"
  "$go" build -v -tags shimbinary -ldflags "$ldflags" -o "$output" "$product"
} 2>&1 | progress
