#!/usr/bin/env bash
# Runs a test many times while others take the processors and the disk: what fails by chance in CI fails here soon.
#
#   PKG=./agent/pods   the package
#   RUN=regexp         its tests; default: all
#   COUNT=20           how often
#   LOAD=2             programs that compute, for each processor; and as many that write and sync 16 MiB at a time; 0: none
#   RACE=0             without the race detector
#   TEST_FLAGS=...     more flags for the test's program, such as -test.v -test.short
set -euo pipefail
cd "$(dirname "$0")/.."

: "${PKG:?PKG is the package to test, such as ./agent/pods}"
count=${COUNT:-20} load=${LOAD:-2}
dir=$(mktemp -d)
burdens=()
finish() {
  ((${#burdens[@]} == 0)) || kill "${burdens[@]}" 2>/dev/null || true
  wait 2>/dev/null || true
  rm -rf "$dir"
}
trap finish EXIT

race=() link=()
export CGO_ENABLED=0
if [[ ${RACE:-1} != 0 ]]; then
  CGO_ENABLED=1 race=(-race)
  # Its own executable is the demo image, as test/run.sh says.
  [[ $PKG != ./agent ]] || link=(-ldflags '-s -w -linkmode external -extldflags -static')
fi
go test "${race[@]}" "${link[@]}" -c -vet=off -o "$dir/tests" "$PKG"

compute() { while :; do :; done; }
write() { while :; do dd if=/dev/zero of="$dir/written.$1" bs=1M count=16 conv=fsync status=none; done; }
for ((n = 0; n < load * $(nproc); n++)); do
  compute & burdens+=($!)
  write "$n" & burdens+=($!)
done

failed=0
cd "$PKG"
for ((n = 1; n <= count; n++)); do
  # shellcheck disable=SC2086 # several flags in one variable
  if "$dir/tests" -test.run "${RUN:-.}" -test.timeout 20m ${TEST_FLAGS:-} >"$dir/output" 2>&1; then
    echo "run $n of $count: ok"
  else
    failed=$((failed + 1))
    tail -n 100 "$dir/output"
    echo "run $n of $count: FAIL"
  fi
done
echo "$failed of $count runs failed under LOAD=$load"
((failed == 0))
