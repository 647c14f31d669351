#!/usr/bin/env bash
# Every fuzz target in turn, FUZZTIME each (default 1m); FOCUS=regexp picks by
# "package target". What breaks a target is kept in its testdata/fuzz, the others go on.
set -uo pipefail
cd "$(dirname "$0")/.."

[[ -d /dev/shm ]] && export TMPDIR=/dev/shm # files of targets need not survive

failed=0
while read -r package target; do
  [[ "$package $target" =~ ${FOCUS:-.} ]] || continue
  echo "== $package $target"
  go test "$package" -run '^$' -fuzz "^$target\$" -fuzztime "${FUZZTIME:-1m}" </dev/null || failed=1
done < <(git grep -oE '^func Fuzz\w+' -- '*_test.go' | sed -E 's|^([^:]*/)[^/:]*:func |./\1 |')
exit "$failed"
