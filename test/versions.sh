#!/usr/bin/env bash
# Builds older releases beside this one and rolls three machines from each of them to this one, back, and forward again, under
# requests and with running pods (test/machines, TestVersions). Needs root and the history of the repository.
#
#   VERSIONS="..."  commits, from the oldest on; default: those of test/versions.txt
#   RUN=regexp      of these alone
set -euo pipefail
cd "$(dirname "$0")/.."

builds=$(mktemp -d /tmp/versions-XXXXXX)
finish() {
  for tree in "$builds"/*/; do git worktree remove --force "$tree" >/dev/null 2>&1 || true; done
  rm -rf "$builds"
}
trap finish EXIT
binaries=()
for commit in ${VERSIONS:-$(sed 's/#.*//' test/versions.txt)}; do
  echo "building $(git log -1 --format='%h of %cd: %s' --date=short "$commit")"
  git worktree add --quiet --detach "$builds/$commit" "$commit"
  make --no-print-directory -C "$builds/$commit" build >/dev/null
  # A short path, since the binary's folder names the test.
  mkdir -p "$builds/bin/$commit" && cp "$builds/$commit/bin/setpoint" "$builds/bin/$commit/"
  binaries+=("$builds/bin/$commit/setpoint")
done
SETPOINT_TEST_BINARY=$PWD/bin/setpoint SETPOINT_OLD_BINARIES=$(IFS=:; echo "${binaries[*]}") CGO_ENABLED=0 \
  go test -count=1 -timeout 2h -tags versions -run "^TestVersions$/${RUN:-}" -v ./test/machines
